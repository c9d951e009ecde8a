//! Where standard CRDs come from: the binary itself, Go modules, files, URLs, live clusters.
//!
//! Sources only read. What they read is checked by [`Derivation`](super::Derivation).

pub mod cluster;
pub mod embedded;
pub mod file;
mod kustomization;
pub mod module;
pub(crate) mod shared;
pub mod url;

use std::{io, path::PathBuf};

use super::ParseError;
pub use kustomization::KustomizationError;

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or directory cannot be read.
    #[error("cannot read {}: check that it exists and may be read", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A directory has nothing to read.
    #[error("{} holds no .yaml, .yml or .json file: name the directory that holds the CRDs", path.display())]
    EmptyDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A text is neither YAML nor JSON.
    #[error("cannot parse the documents")]
    Parse(#[from] ParseError),
    /// A kustomization asks for more than is understood.
    #[error("cannot build {}", path.display())]
    Kustomization {
        /// The kustomization file.
        path: PathBuf,
        /// What it asks for.
        #[source]
        source: Box<KustomizationError>,
    },
    /// A Go module cannot be had.
    #[error("cannot get Go module {module}")]
    Module {
        /// Path and version.
        module: String,
        /// Why.
        #[source]
        source: module::ModuleError,
    },
    /// A URL cannot be fetched.
    #[error("cannot fetch {url}")]
    Url {
        /// The URL.
        url: String,
        /// Why.
        #[source]
        source: url::UrlError,
    },
    /// A cluster cannot be read.
    #[error("cannot read the cluster's CustomResourceDefinitions")]
    Cluster(#[from] cluster::ClusterError),
    /// The binary carries none that can be used.
    #[error("cannot use the CRDs of this binary")]
    Embedded(#[from] embedded::EmbeddedError),
}
