//! Responses of an API server that are not a success, by what a migration does about them.

use std::time::Duration;

use support::fence::Refused;

use migration::failure::{Reason, is_owner_unknown, is_store_full};
use migration::journal::Failure;

/// A request that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The object is not there.
    Gone,
    /// The object is not as the request supposes: another resourceVersion, another UID, or there already.
    Conflict,
    /// It may be done later; the server may have said when.
    Later {
        /// What got a response.
        message: String,
        /// The delay in `Retry-After`.
        after: Option<Duration>,
    },
    /// It will not be done.
    Refused {
        /// The class of the refusal.
        reason: Reason,
        /// What got a response.
        message: String,
    },
    /// This process does not lead any more: nothing may be written.
    Fenced,
}

// === impl Rejection ===

impl Rejection {
    /// Sorts an error of the client.
    pub(crate) fn of(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status),
            kube::Error::Service(source) if is_fence(source.as_ref()) => Self::Fenced,
            // A connection that could not be made, or broke: the outcome of the request is unknown.
            other => Self::Later {
                message: other.to_string(),
                after: None,
            },
        }
    }

    fn of_status(status: &kube::core::Status) -> Self {
        let message = status.message.clone();
        let refused = |reason| Self::Refused {
            reason,
            message: message.clone(),
        };
        if is_owner_unknown(&message) {
            return Self::Later {
                message,
                after: None,
            };
        }
        if is_store_full(&message) || message.contains("exceeded quota") {
            return refused(Reason::QuotaExceeded);
        }
        if message.starts_with("admission webhook") || message.contains("ValidatingAdmissionPolicy")
        {
            return refused(Reason::AdmissionDenied);
        }
        match status.code {
            404 | 410 => Self::Gone,
            409 => Self::Conflict,
            401 | 403 => refused(Reason::PermissionDenied),
            408 | 429 | 500..=599 => Self::Later {
                message,
                after: after(status),
            },
            _ => refused(Reason::ResourceConversionFailed),
        }
    }

    /// The failure of a migration that could not do `what` because of this.
    pub(crate) fn into_failure(self, what: &str) -> Failure {
        let (reason, cause) = match self {
            Self::Gone => (Reason::Conflict, "not found".to_owned()),
            Self::Conflict => (Reason::Conflict, "another client is changing it".to_owned()),
            Self::Later { message, .. } => (Reason::ApiUnavailable, message),
            Self::Refused { reason, message } => (reason, message),
            Self::Fenced => (Reason::Conflict, Refused.to_string()),
        };
        Failure {
            reason,
            message: format!("failed to {what}: {cause}"),
        }
    }
}

fn after(status: &kube::core::Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

fn is_fence(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<Refused>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(Box::new(kube::core::Status {
            code,
            message: message.to_owned(),
            ..kube::core::Status::default()
        }))
    }

    #[test]
    fn responses_are_classified_by_reaction() {
        let refused = |reason, message: &str| Rejection::Refused {
            reason,
            message: message.to_owned(),
        };
        let later = |message: &str| Rejection::Later {
            message: message.to_owned(),
            after: None,
        };
        let quota =
            "machines \"m\" is forbidden: exceeded quota: q, requested: 1, used: 1, limited: 1";
        let full = "etcdserver: mvcc: database space exceeded";
        let webhook = "admission webhook \"v.example.com\" denied the request: no";
        let policy =
            "machines \"m\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no";
        let unknown = "machines \"m\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find \
                       RESTMapping for APIVersion a/v1 Kind Owner: no matches for kind \"Owner\" in version \"a/v1\"";
        for (code, message, fault) in [
            (403, unknown, later(unknown)),
            (404, "not found", Rejection::Gone),
            (409, "the object has been modified", Rejection::Conflict),
            (409, "already exists", Rejection::Conflict),
            (429, "slow down", later("slow down")),
            (500, "try again", later("try again")),
            (503, "not now", later("not now")),
            (403, "may not", refused(Reason::PermissionDenied, "may not")),
            (
                422,
                "invalid",
                refused(Reason::ResourceConversionFailed, "invalid"),
            ),
            (403, quota, refused(Reason::QuotaExceeded, quota)),
            (500, full, refused(Reason::QuotaExceeded, full)),
            (403, webhook, refused(Reason::AdmissionDenied, webhook)),
            (422, policy, refused(Reason::AdmissionDenied, policy)),
        ] {
            assert_eq!(
                Rejection::of(&status(code, message)),
                fault,
                "{code} {message}"
            );
        }
    }

    #[test]
    fn a_fence_is_never_tried_again() {
        let error = kube::Error::Service(Refused.into());
        assert_eq!(Rejection::of(&error), Rejection::Fenced);
    }
}
