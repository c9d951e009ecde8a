//! Errors: fatal ones ([`Fatal`]), and those that are retried ([`Error`]).

use std::io;
use std::process::ExitCode;

use support::controller::Failure;
use support::error::{RUNTIME, USAGE};
use support::reconcile::{Report, Retry, client_reason, is_conflict, is_invalid, is_missing};

/// Why the program ends.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// The flags must be changed.
    #[error("{message}")]
    Usage {
        /// The problem and how to fix it.
        message: String,
    },
    /// The port for probes cannot be opened.
    #[error("failed to listen for probes: choose another --metrics-addr")]
    Listen(#[source] io::Error),
    /// The system refused threads or signal handlers.
    #[error("failed to {what}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The connection to the API server is not configured.
    #[error("failed to configure the API server connection")]
    Client(#[from] support::client::Error),
    /// The client cannot be created.
    #[error("failed to create the API server client")]
    Connect(#[source] kube::Error),
    /// The flags for registries are invalid.
    #[error("failed to create the registry client: check --registry-ca-bundle and --release-cache")]
    Releases(#[source] payload::InvalidAuthorities),
    /// A program beside the operator failed.
    #[error(transparent)]
    Program(Box<dyn std::error::Error + Send + Sync>),
}

/// Why a step failed. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to list {what}")]
    List { what: String, source: kube::Error },
    #[error("failed to get {what}")]
    Read { what: String, source: kube::Error },
    /// Objects of the kind may exist, and cannot be listed.
    #[error(
        "CRD {name} exists and the API server does not serve it, so the owners of HostedClusters cannot be determined: check the status of the CRD"
    )]
    NotServed { name: String },
    #[error("failed to annotate HostedCluster {object}")]
    Annotate { object: String, source: kube::Error },
    #[error("failed to update the status of HostedCluster {object}")]
    Status { object: String, source: kube::Error },
    #[error("failed to create an Event for HostedCluster {object}")]
    Event { object: String, source: kube::Error },
    #[error("failed to delete {object}")]
    Delete { object: String, source: kube::Error },
    #[error("failed to delete Deployment {object}")]
    Retire { object: String, source: kube::Error },
    #[error("failed to annotate HostedCluster {object}: other clients keep changing it")]
    Contended { object: String },
    /// One failed object; the condition lists all.
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("failed to write {object}")]
    Write { object: String, source: kube::Error },
    #[error("failed to render the objects of HostedCluster {object}")]
    Build {
        object: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("failed to read {object}: {problem}")]
    Unreadable { object: String, problem: String },
    #[error("failed to create a certificate")]
    Certificate(#[source] rcgen::Error),
    /// Another HostedCluster was quicker.
    #[error("failed to claim the control plane namespace of HostedCluster {object}: {message}")]
    ForeignNamespace { object: String, message: String },
    #[error("failed to watch HostedClusters")]
    Watch(#[source] kube::runtime::watcher::Error),
}

/// The failed step of a reconcile or pass, as a metric label.
pub(crate) fn step(failure: &Failure<Error>) -> &'static str {
    match failure {
        Failure::Error(error) => error.step(),
        Failure::Deadline(_) => "reconcile",
    }
}

// === impl Fatal ===

impl Fatal {
    /// The process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } | Self::Releases(_) => ExitCode::from(USAGE),
            Self::Listen(_)
            | Self::System { .. }
            | Self::Client(_)
            | Self::Connect(_)
            | Self::Program(_) => ExitCode::from(RUNTIME),
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

    /// The failed step, as a metric label.
    pub(crate) fn step(&self) -> &'static str {
        match self {
            Self::List { .. } => "list",
            Self::Read { .. } | Self::NotServed { .. } => "read",
            Self::Annotate { .. } | Self::Contended { .. } => "mark",
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
            | Self::Annotate { source, .. }
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

    /// Whether another client changed the object in between.
    pub(crate) fn is_conflict(&self) -> bool {
        self.client().is_some_and(is_conflict)
    }

    /// Whether the object does not match its schema.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::Apply(error) => error.is_invalid(),
            error => error.client().is_some_and(is_invalid),
        }
    }

    /// Whether the object no longer exists.
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
            | Self::Annotate { source, .. }
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
