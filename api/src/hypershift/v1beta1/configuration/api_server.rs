//! Configuration of API servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;
use crate::schema::{atomic_list, list_map, nullable, preview_rule, tech_preview};

/// Configuration of the Kubernetes and OpenShift API servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = preview_rule(
    "has(self.tlsAdherence) || !has(oldSelf.tlsAdherence)",
    "tlsAdherence cannot be removed once it is set; put it back"
))]
pub struct ApiServerConfiguration {
    /// Serving certificates of the Kubernetes API server for your own host names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_certs: Option<ApiServerServingCerts>,
    /// ConfigMap with further certificate authorities, under the key `ca-bundle.crt`; client
    /// certificates that they signed are accepted.
    #[serde(rename = "clientCA", skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<NameReference>,
    /// Regular expressions for origins of web pages that may call the API.
    #[serde(
        rename = "additionalCORSAllowedOrigins",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(transform = atomic_list)]
    pub additional_cors_allowed_origins: Vec<String>,
    /// Not used for hosted clusters: `spec.secretEncryption` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<ApiServerEncryption>,
    /// TLS versions and ciphers of everything that the cluster exposes. Without a value it is the
    /// profile `Intermediate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_security_profile: Option<TlsSecurityProfile>,
    /// Which components have to follow `tlsSecurityProfile`. It cannot be removed once it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub tls_adherence: Option<TlsAdherence>,
    /// What is written to the audit logs.
    #[serde(default)]
    pub audit: AuditConfiguration,
}

/// Which components have to follow the TLS profile of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsAdherence {
    /// Those that always did: the API servers, the ingress and some others.
    LegacyAdheringComponentsOnly,
    /// All of them.
    StrictAllComponents,
}

/// Certificates of an API server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerServingCerts {
    /// Certificates for names of your own.
    /// For other names, the API server uses the certificate that the control plane generates. Do not
    /// list the name that nodes use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), transform = atomic_list)]
    pub named_certificates: Vec<ApiServerNamedServingCert>,
}

/// A certificate and the names that it is for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerNamedServingCert {
    /// DNS names that the certificate is used for; a leading `*.` matches one label.
    /// Without names, they are read from the certificate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), transform = atomic_list)]
    pub names: Vec<String>,
    /// TLS Secret with the certificate (`tls.crt`) and its key (`tls.key`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving_certificate: Option<NameReference>,
}

/// How a standalone cluster encrypts data in etcd.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerEncryption {
    /// The way to encrypt. It has no effect for hosted clusters.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<EncryptionType>,
}

/// What is written to the audit logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditConfiguration {
    /// How much is written about a request.
    #[serde(default)]
    pub profile: AuditProfile,
    /// Other profiles for requests of certain groups of users. The first rule with a group that the user
    /// is in counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list_map(["group"]))]
    pub custom_rules: Vec<AuditCustomRule>,
}

/// How much is written about requests of a group of users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditCustomRule {
    /// Name of the group, for example `system:authenticated`.
    #[schemars(length(min = 1))]
    pub group: String,
    /// How much is written about a request.
    pub profile: AuditProfile,
}

/// TLS versions and ciphers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsSecurityProfile {
    /// Which profile it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<TlsProfileType>,
    /// May be given, empty, when `type` is `Old`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = nullable)]
    pub old: Option<EmptyProfile>,
    /// May be given, empty, when `type` is `Intermediate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = nullable)]
    pub intermediate: Option<EmptyProfile>,
    /// May be given, empty, when `type` is `Modern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = nullable)]
    pub modern: Option<EmptyProfile>,
    /// Version and ciphers of your own, when `type` is `Custom`. A bad choice makes the cluster
    /// insecure or unreachable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = nullable)]
    pub custom: Option<CustomTlsProfile>,
}

/// A profile that has nothing to set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmptyProfile {}

/// TLS version and ciphers of your own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomTlsProfile {
    /// Ciphers to offer, by their OpenSSL names, for example `ECDHE-RSA-AES128-GCM-SHA256`.
    /// Components leave out those that they do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub ciphers: Vec<String>,
    /// Lowest TLS version to accept. `VersionTLS13` is not supported by all components.
    #[serde(rename = "minTLSVersion", skip_serializing_if = "Option::is_none")]
    pub min_tls_version: Option<TlsVersion>,
}

/// A way to encrypt data in etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EncryptionType {
    /// As if nothing were said.
    #[serde(rename = "")]
    Unset,
    /// Not at all.
    #[serde(rename = "identity")]
    Identity,
    /// AES-CBC with PKCS#7 padding and a key of 32 bytes.
    #[serde(rename = "aescbc")]
    Aescbc,
    /// AES-GCM with a random nonce and a key of 32 bytes.
    #[serde(rename = "aesgcm")]
    Aesgcm,
}

/// How much is written about a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AuditProfile {
    /// Metadata of every request, and the body of requests that write OAuth tokens.
    #[default]
    Default,
    /// In addition, the bodies of requests that write.
    WriteRequestBodies,
    /// In addition, the bodies of requests that read.
    AllRequestBodies,
    /// Nothing. Problems are then hard to explain; not recommended.
    None,
}

/// A set of TLS versions and ciphers, as Mozilla recommends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsProfileType {
    /// For very old clients; TLS 1.0 and newer.
    Old,
    /// For clients in general; TLS 1.2 and newer.
    Intermediate,
    /// For new clients; TLS 1.3.
    Modern,
    /// What `custom` says.
    Custom,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TlsVersion {
    /// TLS 1.0.
    #[serde(rename = "VersionTLS10")]
    Tls10,
    /// TLS 1.1.
    #[serde(rename = "VersionTLS11")]
    Tls11,
    /// TLS 1.2.
    #[serde(rename = "VersionTLS12")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "VersionTLS13")]
    Tls13,
}
