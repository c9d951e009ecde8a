//! Errors of commands and their exit codes.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use support::error::{RUNTIME, USAGE};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The flags, or the files that they name, are not usable.
    #[error("{0}")]
    Usage(String),
    /// Listening on an address failed.
    #[error("failed to listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Listening on a Unix socket failed.
    #[error("failed to listen on unix:{path}", path = .path.display())]
    ListenUnix {
        /// The socket's path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Writing the address file failed.
    #[error("failed to write {path}", path = .path.display())]
    AddressFile {
        /// The file's path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Starting a thread, installing a signal handler, or standard input and output failed.
    #[error("failed to {what}")]
    System {
        /// The operation.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The body of `capi-proxy translate` cannot be translated.
    #[error("{0}")]
    Translate(#[from] capi_translate::Refusal),
}

// === impl Error ===

impl Error {
    /// The exit code of the process.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(USAGE),
            Self::Listen { .. }
            | Self::ListenUnix { .. }
            | Self::AddressFile { .. }
            | Self::System { .. }
            | Self::Translate(_) => ExitCode::from(RUNTIME),
        }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
