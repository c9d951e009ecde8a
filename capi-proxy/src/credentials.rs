//! Who the proxy is to the API server, and how it knows that it is the API server: kept up to date while it runs.
//!
//! Everything that comes from a file is read again when the file changes. A file that cannot be read, or holds nothing
//! of use, changes nothing: what was read last goes on serving, a token until it expires. What is *not* done here is
//! to connect.

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

/// Why credentials cannot be had. Never holds a byte of them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file cannot be read (yet).
    #[error("cannot read {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The kubeconfig is no kubeconfig.
    #[error("kubeconfig {path} is malformed{at}", path = .path.display())]
    Malformed { path: PathBuf, at: String },
    /// The kubeconfig names something that it does not hold, or lacks something.
    #[error("kubeconfig {path}: {message}", path = .path.display())]
    Incomplete { path: PathBuf, message: String },
    /// The kubeconfig asks for something that the proxy does not do.
    #[error("kubeconfig {path}: {field} is not supported: {way_out}", path = .path.display())]
    Unsupported {
        path: PathBuf,
        field: &'static str,
        way_out: &'static str,
    },
    /// The server's address is of no use.
    #[error("server {server:?}: {message}")]
    Server {
        server: String,
        message: &'static str,
    },
    /// There is no source of credentials at all.
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
    /// Waiting does not help: someone must change the configuration.
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
