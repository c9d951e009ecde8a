//! Errors of the API server, which are retried. Problems with clouds are conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use support::controller::ObjectKey;
use support::reconcile::{Report, Retry, client_reason, is_conflict};

/// An error of the API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("failed to {action} {object}")]
    Write {
        action: &'static str,
        object: String,
        source: kube::Error,
    },
}

/// The error of a request about an object.
pub(super) fn failed_to(
    action: &'static str,
    kind: &str,
    metadata: &ObjectMeta,
) -> impl FnOnce(kube::Error) -> Error + use<> {
    let object = format!("{kind} {}", ObjectKey::of(metadata));
    move |source| Error::Write {
        action,
        object,
        source,
    }
}

impl Report for Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Apply(error) => error.reason(),
            Self::Write { source, .. } => client_reason(source),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Apply(error) => error.retry(),
            Self::Write { source, .. } if is_conflict(source) => Retry::AtOnce,
            Self::Write { .. } => Retry::Backoff,
        }
    }
}
