//! Errors of reconciling, which are retried.

use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};

/// An error of reconciling.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("failed to list Secrets of namespace {namespace}")]
    List {
        namespace: String,
        source: kube::Error,
    },
    #[error("failed to issue certificates")]
    Certificates(#[from] crate::pki::Error),
    #[error("the thread that issues certificates panicked")]
    Thread(#[from] tokio::task::JoinError),
    #[error("failed to apply {}", listed(.0))]
    Components(Vec<(&'static str, Error)>),
    #[error("failed to patch HostedControlPlane {object}")]
    Write { object: String, source: kube::Error },
}

/// Formats the failed components with their errors.
fn listed(failed: &[(&'static str, Error)]) -> String {
    let each = failed
        .iter()
        .map(|(component, error)| format!("component {component}: {}", chain(error)));
    each.collect::<Vec<_>>().join("; ")
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Apply(error) => error.reason(),
            Self::List { source, .. } | Self::Write { source, .. } => client_reason(source),
            Self::Components(failed) => failed
                .first()
                .map_or("Unknown", |(_, error)| error.reason()),
            Self::Certificates(_) => "Certificates",
            Self::Thread(_) => "Internal",
        }
    }

    fn retry(&self) -> Retry {
        Retry::Backoff
    }
}
