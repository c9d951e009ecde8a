//! Reads what the crate `ownership` decides on: which API groups hold the Cluster API objects of a hosted cluster, and
//! the namespaces of control planes. Nothing is written, and nothing is decided here.

#![deny(missing_docs)]

mod cache;
mod groups;
mod kinds;
mod namespace;

pub use groups::Reader;
pub use kinds::Kind;
pub use namespace::{find_namespace, list_namespaces};

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A list was refused, or failed.
    #[error("failed to list {what}")]
    List {
        /// The kind, and the namespace if it is one.
        what: String,
        /// What the client said.
        source: kube::Error,
    },
    /// An object was refused, or failed to be read.
    #[error("failed to get {what}")]
    Get {
        /// Kind and name.
        what: String,
        /// What the client said.
        source: kube::Error,
    },
    /// Objects may exist that cannot be listed.
    #[error(
        "CustomResourceDefinition {name} exists and the API server does not serve it: the owner of HostedClusters \
         cannot be decided"
    )]
    NotServed {
        /// The name of the CRD.
        name: String,
    },
}

// === impl Error ===

impl Error {
    fn list(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::List { what, source }
    }
}
