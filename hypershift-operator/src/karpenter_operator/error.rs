//! Why a step of a controller failed. It is tried again.

use support::error::chain;
use support::reconcile::{Report, Retry, client_reason, is_conflict};
use support::{apply, aws};

use crate::{karpenter_crds, node_pool};

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to get {what}")]
    Read { what: String, source: kube::Error },
    #[error("failed to write {what}")]
    Write { what: String, source: kube::Error },
    #[error(transparent)]
    Apply(#[from] apply::Error),
    #[error(transparent)]
    Pool(#[from] node_pool::Error),
    #[error("failed to determine the owner of the control plane's namespace")]
    Owner(#[source] crate::error::Error),
    #[error("failed to read {object}: {problem}")]
    Unreadable { object: String, problem: String },
    #[error("failed to read the release of the control plane")]
    Release(#[source] payload::Error),
    #[error("failed to render component karpenter")]
    Render(#[from] control_plane_component::Error),
    #[error(transparent)]
    Crds(#[from] karpenter_crds::Error),
    #[error("failed to find instances of nodes that join")]
    Instances(#[source] aws::Error),
    /// Independent steps that failed.
    #[error("{}", .0.iter().map(|error| chain(error)).collect::<Vec<_>>().join("; "))]
    Several(Vec<Self>),
}

// === impl Error ===

impl Error {
    pub(super) fn read(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Read { what, source }
    }

    pub(super) fn write(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Write { what, source }
    }

    /// The result of independent steps, from the errors of those that failed.
    pub(super) fn all(mut failed: Vec<Self>) -> Result<(), Self> {
        match failed.pop() {
            None => Ok(()),
            Some(only) if failed.is_empty() => Err(only),
            Some(last) => {
                failed.push(last);
                Err(Self::Several(failed))
            }
        }
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => client_reason(source),
            Self::Apply(source) => source.reason(),
            Self::Pool(source) => source.reason(),
            Self::Owner(source) => source.reason(),
            Self::Unreadable { .. } => "UnexpectedAnswer",
            Self::Release(source) => source.reason(),
            Self::Render(_) => "InvalidRelease",
            Self::Crds(_) => "MissingDefinitions",
            Self::Instances(_) => "CloudError",
            Self::Several(failed) => failed.first().map_or("Internal", Self::reason),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Write { source, .. } if is_conflict(source) => Retry::AtOnce,
            Self::Apply(source) => source.retry(),
            Self::Pool(source) => source.retry(),
            Self::Read { .. }
            | Self::Write { .. }
            | Self::Owner(_)
            | Self::Unreadable { .. }
            | Self::Release(_)
            | Self::Render(_)
            | Self::Crds(_)
            | Self::Instances(_)
            | Self::Several(_) => Retry::Backoff,
        }
    }
}
