//! Why the program ends, and with which exit code.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use support::error::{RUNTIME, USAGE};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The flags or what they name must be changed.
    #[error("{0}")]
    Usage(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A Unix socket cannot be listened on.
    #[error("cannot listen on unix:{path}", path = .path.display())]
    ListenUnix {
        /// The socket's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file with the addresses cannot be written.
    #[error("cannot write {path}", path = .path.display())]
    AddressFile {
        /// The file's path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused a thread, a signal handler or standard input and output.
    #[error("cannot {what}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// `capi-proxy translate` met something that it refuses.
    #[error("{0}")]
    Translate(#[from] capi_translate::Refusal),
}

// === impl Error ===

impl Error {
    /// The process's exit code.
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
