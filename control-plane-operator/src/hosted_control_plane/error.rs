//! Why a pass could not be gone through to its end. It is tried again.

use support::error::chain;
use support::reconcile::{Report, Retry, client_reason};

/// Why a pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("cannot list Secrets of namespace {namespace}")]
    List {
        namespace: String,
        source: kube::Error,
    },
    #[error("certificates cannot be made")]
    Certificates(#[from] crate::pki::Error),
    #[error("the thread that makes certificates has ended")]
    Thread(#[from] tokio::task::JoinError),
    #[error("failed to write {}", listed(.0))]
    Components(Vec<(&'static str, Error)>),
    #[error("cannot write to HostedControlPlane {object}")]
    Write { object: String, source: kube::Error },
}

/// All components that could not be written, each with its cause.
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
