//! Why an identity provider is not used.

/// Why an identity provider is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("invalid name: set one that is not empty and has no slash, colon or percent sign")]
    Name,
    #[error("an earlier identity provider has the same name: rename one of them")]
    Duplicate,
    #[error("invalid mappingMethod {0:?}: set add, claim, generate or lookup")]
    MappingMethod(String),
    #[error("the identity provider type '{0}' is not supported")]
    Type(String),
    #[error("type {0} was specified, but its configuration is missing")]
    Section(String),
    #[error("{0} is required: set it to the name of a {1} with key {2}")]
    Reference(&'static str, &'static str, &'static str),
    #[error("{kind} {name} does not exist: create it next to the HostedCluster, with key {key}")]
    Object {
        kind: &'static str,
        name: String,
        key: &'static str,
    },
    #[error("{kind} {name} has no key {key}: add it")]
    Key {
        kind: &'static str,
        name: String,
        key: &'static str,
    },
    #[error(
        "key {key} of ConfigMap {name} has no certificate in PEM format: set it to a CA bundle"
    )]
    NotPem { name: String, key: &'static str },
    #[error("{0} is required: set it")]
    Field(&'static str),
    #[error("tlsClientCert and tlsClientKey belong together: set both or none of them")]
    Pair,
    #[error("key {key} of Secret {name} is empty: set it")]
    Empty { name: String, key: &'static str },
    #[error("waiting for the discovery document of issuer {0}")]
    Undiscovered(String),
    #[error("failed to discover the endpoints of issuer {issuer}: {reason}")]
    Undiscoverable { issuer: String, reason: String },
    #[error("using the endpoints that are known from before: {0}")]
    Stale(String),
}
