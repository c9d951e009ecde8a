//! Who the proxy is to the API server, and how it knows that it is the API server: kept up to date while it runs.
//!
//! Files are reloaded when they change. A file that cannot be read, or is invalid, is ignored: the last valid contents
//! stay in use, a token until it expires. Connections are *not* opened here.

mod kubeconfig;
mod plan;
mod store;
mod tls;
mod token;

pub(crate) use plan::{Endpoint, Source};
pub(crate) use store::{NotReady, Session, Store};
pub(crate) use tls::{Alpn, Identity};

use std::io;
use std::path::PathBuf;

/// Errors of credentials. They contain no part of the credentials.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Reading a file failed. It may appear later.
    #[error("failed to read {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The kubeconfig is malformed.
    #[error("kubeconfig {path} is malformed{at}", path = .path.display())]
    Malformed { path: PathBuf, at: String },
    /// The kubeconfig lacks an entry or a field.
    #[error("kubeconfig {path}: {message}", path = .path.display())]
    Incomplete { path: PathBuf, message: String },
    /// The kubeconfig uses an unsupported field.
    #[error("kubeconfig {path}: {field} is not supported: {way_out}", path = .path.display())]
    Unsupported {
        path: PathBuf,
        field: &'static str,
        way_out: &'static str,
    },
    /// The server URL is not usable.
    #[error("server {server:?}: {message}")]
    Server {
        server: String,
        message: &'static str,
    },
    /// There is no source of credentials.
    #[error(
        "no credentials: give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account"
    )]
    NoSource,
    /// KUBECONFIG names several files.
    #[error(
        "KUBECONFIG names several files, which are not merged: name one, or use --kubeconfig FILE"
    )]
    SeveralFiles,
    /// Certificates or a key cannot be used.
    #[error("{what} cannot be used: {message}")]
    Tls { what: &'static str, message: String },
    /// A token is empty or not a header value.
    #[error("{from} holds no token")]
    Token { from: String },
}

// === impl Error ===

impl Error {
    /// Whether the configuration must be changed, so that waiting does not help.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::Incomplete { .. }
            | Self::Unsupported { .. }
            | Self::Server { .. }
            | Self::NoSource
            | Self::SeveralFiles => true,
            Self::Read { .. } | Self::Tls { .. } | Self::Token { .. } => false,
        }
    }

    /// The error with its causes, on one line.
    pub(crate) fn chain(&self) -> String {
        support::error::chain(self)
    }
}
