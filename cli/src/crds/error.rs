//! Why CRDs cannot be derived.

use super::{Origin, Skipped};

/// Why a derivation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document was refused.
    #[error("{origin}: {subject} cannot be derived")]
    Refused {
        /// Where the document came from.
        origin: Origin,
        /// The object as far as it has a name.
        subject: String,
        /// Why.
        #[source]
        refusal: Box<Refusal>,
    },
    /// A source held objects, and none of them is a CRD of a paired group.
    #[error("{name} holds no CRD to derive{}", first_reason(.skipped))]
    NothingToDerive {
        /// The source as the user named it.
        name: String,
        /// What it held instead.
        skipped: Vec<Skipped>,
    },
    /// Two documents give the same CRD.
    #[error("{crd} comes twice, from {first} and from {second}: name one source for it")]
    Duplicate {
        /// The private name.
        crd: String,
        /// Where it came from first.
        first: Origin,
        /// Where it came from again.
        second: Origin,
    },
}

fn first_reason(skipped: &[Skipped]) -> String {
    match skipped {
        [] => ": it is empty".to_owned(),
        [only] => format!(": {only}"),
        [first, rest @ ..] => format!(": {first}, and {} more like it or others", rest.len()),
    }
}

/// What is wrong with one document; each says the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a Kubernetes object at all.
    #[error("it is not a Kubernetes object, which has apiVersion and kind: give the CRD itself")]
    NotAnObject,
    /// A CRD of the API that Kubernetes 1.22 removed.
    #[error("{api_version} is gone since Kubernetes 1.22: give a CRD of apiextensions.k8s.io/v1")]
    OldApi {
        /// The document's apiVersion.
        api_version: String,
    },
    /// The group is a private one.
    #[error("group {group} is private already: derive from the CRD of {standard}")]
    AlreadyPrivate {
        /// The document's group.
        group: String,
        /// Its standard name.
        standard: String,
    },
    /// A field is missing or not of the type that it has in a CRD.
    #[error("{field} is missing or of the wrong type: give a CRD that an API server accepts")]
    Malformed {
        /// Path of the field.
        field: &'static str,
    },
    /// The name is not what the API server insists on.
    #[error(
        "its name is not {expected}, which plural and group make: give a CRD that an API server accepts"
    )]
    Name {
        /// `<plural>.<group>`.
        expected: String,
    },
    /// Controllers look for another plural.
    #[error(
        "its plural is {plural}, but controllers look for {expected}.<group>, the plural that they compute from kind \
         {kind}: no reference to it could be resolved, so fix the CRD at its source"
    )]
    Plural {
        /// The kind.
        kind: String,
        /// The plural as given.
        plural: String,
        /// The plural as computed.
        expected: String,
    },
    /// No version is stored.
    #[error("none of its versions has storage: true: give a CRD that an API server accepts")]
    NoStorageVersion,
    /// More than one version is stored.
    #[error(
        "more than one of its versions has storage: true: give a CRD that an API server accepts"
    )]
    SeveralStorageVersions,
    /// The stored version cannot be asked for.
    #[error(
        "its storage version {version} is not served, so nothing could be read without conversion: serve it, or store another"
    )]
    StorageVersionNotServed {
        /// The stored version.
        version: String,
    },
    /// Several versions, no webhook and no choice.
    #[error(
        "it serves {served}, and without a conversion webhook only one can be right: choose --versions storage, or \
         name the webhook with --conversion webhook=NAMESPACE/SERVICE"
    )]
    SeveralVersions {
        /// The served versions.
        served: String,
    },
    /// Several versions, no webhook, and the schemas differ.
    #[error(
        "it serves {served}, whose schemas differ, so objects would be served wrong without conversion: use \
         --versions storage, or name the webhook with --conversion webhook=NAMESPACE/SERVICE"
    )]
    SchemasDiffer {
        /// The served versions.
        served: String,
    },
    /// A provider's CRD without a contract label.
    #[error(
        "it has no contract label, without which controllers cannot resolve references to it: derive from a built \
         release manifest, or give the label with --contract-label KEY=VERSION"
    )]
    ContractLabelMissing,
    /// The contract label leads to a version that is not served.
    #[error(
        "controllers would use version {version}, the newest of label {label}, but it serves only {served}: keep that \
         version with --versions all and a conversion webhook, or fix the label at its source"
    )]
    ContractVersionNotServed {
        /// The label's key.
        label: String,
        /// The version that it leads to.
        version: String,
        /// The versions that are served.
        served: String,
    },
    /// Fields outside the schema are kept, which a new CRD may not ask for.
    #[error(
        "spec.preserveUnknownFields is true, which an API server accepts on old CRDs only: set it to false at the source"
    )]
    PreservesUnknownFields,
    /// The object read is on its way out.
    #[error("it is being deleted: derive from another source")]
    BeingDeleted,
}
