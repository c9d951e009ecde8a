//! What can go wrong: for good ([`Fatal`]), or until it is tried again ([`Error`]).

use std::io;
use std::process::ExitCode;

use support::error::{RUNTIME, USAGE};
use support::reconcile::{Report, Retry, client_reason, is_conflict, is_missing};

/// Why the program ends.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The flags must be changed.
    #[error("{message}")]
    Usage {
        /// What is wrong, and the way out.
        message: String,
    },
    /// The port for probes cannot be opened.
    #[error("cannot listen for probes: choose another --metrics-addr")]
    Listen(#[source] io::Error),
    /// The system refused threads or signal handlers.
    #[error("cannot {what}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It is not known how to reach the API server.
    #[error("cannot reach the API server")]
    Client(#[from] support::client::Error),
    /// A client cannot be made of what is known.
    #[error("cannot make a client of the API server")]
    Connect(#[source] kube::Error),
    /// Releases cannot be read as the flags say.
    #[error("cannot make a client of registries: see --registry-ca-bundle and --release-cache")]
    Releases(#[source] payload::InvalidAuthorities),
}

/// Why a step failed. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot list {what}")]
    List { what: String, source: kube::Error },
    #[error("cannot read {what}")]
    Read { what: String, source: kube::Error },
    /// Objects may be there, and nobody can tell.
    #[error(
        "the CRD {name} is there and the API server does not serve it: without it nobody can tell who owns a hosted cluster"
    )]
    NotServed { name: String },
    #[error("cannot mark HostedCluster {object}")]
    Mark { object: String, source: kube::Error },
    #[error("cannot write the status of HostedCluster {object}")]
    Status { object: String, source: kube::Error },
    #[error("cannot send an Event about HostedCluster {object}")]
    Event { object: String, source: kube::Error },
    #[error("failed to delete {object}")]
    Delete { object: String, source: kube::Error },
    #[error("cannot delete Deployment {object}")]
    Retire { object: String, source: kube::Error },
    #[error(
        "HostedCluster {object} is written to by others all the time: its mark cannot be decided"
    )]
    Contended { object: String },
    /// One object of a plan; the condition tells of all.
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("cannot write {object}")]
    Write { object: String, source: kube::Error },
    #[error("cannot build what HostedCluster {object} is made of")]
    Build {
        object: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("HostedCluster {object} cannot be read: {problem}")]
    Unreadable { object: String, problem: String },
    #[error("cannot make a certificate")]
    Certificate(#[source] rcgen::Error),
    /// Another HostedCluster was quicker.
    #[error("failed to claim the control plane namespace of HostedCluster {object}: {message}")]
    ForeignNamespace { object: String, message: String },
    #[error("cannot watch HostedClusters")]
    Watch(#[source] kube::runtime::watcher::Error),
}

// === impl Fatal ===

impl Fatal {
    /// The process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } | Self::Releases(_) => ExitCode::from(USAGE),
            Self::Listen(_) | Self::System { .. } | Self::Client(_) | Self::Connect(_) => {
                ExitCode::from(RUNTIME)
            }
        }
    }

    /// A flag names a file that cannot be used.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of map_err")]
    pub(crate) fn file(error: payload::args::InvalidFile) -> Self {
        let message = error.to_string();
        Self::Usage { message }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

// === impl Error ===

impl Error {
    pub(crate) fn list(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::List { what, source }
    }

    /// What was attempted, for a metric.
    pub(crate) fn step(&self) -> &'static str {
        match self {
            Self::List { .. } => "list",
            Self::Read { .. } | Self::NotServed { .. } => "read",
            Self::Mark { .. } | Self::Contended { .. } => "mark",
            Self::Status { .. } => "status",
            Self::Event { .. } => "event",
            Self::Delete { .. } => "delete",
            Self::Retire { .. } => "retire",
            Self::Apply(_) | Self::Write { .. } | Self::ForeignNamespace { .. } => "apply",
            Self::Build { .. } | Self::Unreadable { .. } | Self::Certificate(_) => "build",
            Self::Watch(_) => "watch",
        }
    }

    pub(crate) fn client(&self) -> Option<&kube::Error> {
        match self {
            Self::List { source, .. }
            | Self::Read { source, .. }
            | Self::Mark { source, .. }
            | Self::Status { source, .. }
            | Self::Event { source, .. }
            | Self::Write { source, .. }
            | Self::Delete { source, .. }
            | Self::Retire { source, .. } => Some(source),
            Self::Apply(error) => error.client(),
            Self::NotServed { .. }
            | Self::Contended { .. }
            | Self::ForeignNamespace { .. }
            | Self::Build { .. }
            | Self::Unreadable { .. }
            | Self::Certificate(_)
            | Self::Watch(_) => None,
        }
    }

    /// Whether somebody else has written in between.
    pub(crate) fn is_conflict(&self) -> bool {
        self.client().is_some_and(is_conflict)
    }

    /// Whether the object is not there any more.
    pub(crate) fn is_missing(&self) -> bool {
        self.client().is_some_and(is_missing)
    }
}

impl From<ownership_reader::Error> for Error {
    fn from(error: ownership_reader::Error) -> Self {
        match error {
            ownership_reader::Error::List { what, source } => Self::List { what, source },
            ownership_reader::Error::Get { what, source } => Self::Read { what, source },
            ownership_reader::Error::NotServed { name } => Self::NotServed { name },
        }
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::NotServed { .. } => "NotServed",
            Self::Contended { .. } => "Conflict",
            Self::ForeignNamespace { .. } => "ForeignNamespace",
            Self::Watch(_) => "WatchFailed",
            Self::Apply(error) => error.reason(),
            Self::Build { .. } => "InvalidRelease",
            Self::Unreadable { .. } => "UnexpectedAnswer",
            Self::Certificate(_) => "Internal",
            Self::List { source, .. }
            | Self::Read { source, .. }
            | Self::Mark { source, .. }
            | Self::Status { source, .. }
            | Self::Event { source, .. }
            | Self::Write { source, .. }
            | Self::Delete { source, .. }
            | Self::Retire { source, .. } => client_reason(source),
        }
    }

    fn retry(&self) -> Retry {
        if self.is_conflict() {
            return Retry::AtOnce;
        }
        Retry::Backoff
    }
}
