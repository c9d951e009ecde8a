//! Errors of the API server, which are retried. Problems with AWS are conditions.

use api::hypershift::v1beta1::AwsEndpointService;
use support::controller::ObjectKey;
use support::reconcile::{Report, Retry, client_reason, is_conflict};

/// An error of the API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Apply(#[from] support::apply::Error),
    #[error("failed to {action} AWSEndpointService {name}")]
    Write {
        action: &'static str,
        name: String,
        source: kube::Error,
    },
}

/// The error of a request about an AWSEndpointService.
pub(super) fn failed_to(
    action: &'static str,
    live: &AwsEndpointService,
) -> impl FnOnce(kube::Error) -> Error + use<> {
    let name = ObjectKey::of(&live.metadata).to_string();
    move |source| Error::Write {
        action,
        name,
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
