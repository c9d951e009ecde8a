//! Why a step of a pool's reconciliation failed. It is tried again.

use support::apply;
use support::reconcile::{Report, Retry, client_reason, is_conflict, is_invalid};

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to get {what}")]
    Read { what: String, source: kube::Error },
    #[error("failed to determine the owner of the HostedCluster")]
    Owner(#[source] crate::error::Error),
    #[error("failed to write {what}")]
    Write { what: String, source: kube::Error },
    #[error(transparent)]
    Apply(#[from] apply::Error),
}

// === impl Error ===

impl Error {
    pub(crate) fn read(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Read { what, source }
    }

    pub(crate) fn write(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Write { what, source }
    }

    /// Whether the API server does not serve a kind to this operator: its definition, or the permission for it, may be about
    /// to be installed.
    pub(crate) fn is_unserved(&self) -> bool {
        self.code().is_some_and(|code| matches!(code, 403 | 404))
    }

    /// Whether the object does not match its schema.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => is_invalid(source),
            Self::Owner(source) => source.is_invalid(),
            Self::Apply(source) => source.is_invalid(),
        }
    }

    /// The status code of the API server's response.
    fn code(&self) -> Option<u16> {
        let client = match self {
            Self::Read { source, .. } | Self::Write { source, .. } => Some(source),
            Self::Owner(source) => source.client(),
            Self::Apply(source) => source.client(),
        };
        match client {
            Some(kube::Error::Api(status)) => Some(status.code),
            Some(_) | None => None,
        }
    }

    /// The failed step, as a metric label.
    pub(crate) fn step(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Owner(_) => "owner",
            Self::Write { .. } => "write",
            Self::Apply(_) => "apply",
        }
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => client_reason(source),
            Self::Owner(source) => source.reason(),
            Self::Apply(source) => source.reason(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Write { source, .. } if is_conflict(source) => Retry::AtOnce,
            Self::Read { .. } | Self::Write { .. } => Retry::Backoff,
            Self::Owner(source) => source.retry(),
            Self::Apply(source) => source.retry(),
        }
    }
}
