//! Maps errors to the closed set of failure reasons, and to transient or permanent.

use migration::failure::{Reason, is_owner_unknown, is_store_full};
use support::error::chain;
use support::fence::Refused;

use crate::error::Error;

/// Why a step failed.
#[derive(Debug)]
pub(crate) enum HookError {
    /// It may succeed on retry: the API server is busy, or there was a conflict.
    Transient(Reason, String),
    /// It does not succeed without user action.
    Permanent(Reason, String),
    /// This process is not the leader: another one continues.
    NotLeading,
}

/// Classifies an error.
pub(crate) fn classify(error: &Error) -> HookError {
    let message = chain(error);
    match error.client() {
        Some(error) => of_client(error, message),
        None => HookError::Transient(Reason::Conflict, message),
    }
}

/// Classifies a response of the API server.
pub(crate) fn of_client(error: &kube::Error, message: String) -> HookError {
    match error {
        kube::Error::Api(status) => of_status(status.code, &status.message, message),
        kube::Error::Service(error) if error.is::<Refused>() => HookError::NotLeading,
        _ => HookError::Transient(Reason::ApiUnavailable, message),
    }
}

fn of_status(code: u16, response: &str, message: String) -> HookError {
    match code {
        403 if is_owner_unknown(response) => HookError::Transient(Reason::ApiUnavailable, message),
        403 if response.contains("exceeded quota") => {
            HookError::Permanent(Reason::QuotaExceeded, message)
        }
        _ if response.contains("admission webhook")
            || response.contains("ValidatingAdmissionPolicy") =>
        {
            HookError::Permanent(Reason::AdmissionDenied, message)
        }
        _ if is_store_full(response) => HookError::Permanent(Reason::QuotaExceeded, message),
        401 | 403 => HookError::Permanent(Reason::PermissionDenied, message),
        404 | 409 | 410 => HookError::Transient(Reason::Conflict, message),
        429 | 500.. => HookError::Transient(Reason::ApiUnavailable, message),
        _ => HookError::Permanent(Reason::ResourceConversionFailed, message),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn reason(code: u16, message: &str) -> (Reason, bool) {
        let status = Status::failure(message, "").with_code(code);
        match of_client(&kube::Error::Api(Box::new(status)), String::new()) {
            HookError::Transient(reason, _) => (reason, true),
            HookError::Permanent(reason, _) => (reason, false),
            HookError::NotLeading => unreachable!("an answer of the server"),
        }
    }

    #[test]
    fn api_errors_map_to_failure_reasons() {
        let denied = "admission webhook \"x.example.com\" denied the request: no";
        let policy = "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied it";
        for (code, message, expected) in [
            (
                409,
                "the object has been modified",
                (Reason::Conflict, true),
            ),
            (429, "too many requests", (Reason::ApiUnavailable, true)),
            (500, "internal", (Reason::ApiUnavailable, true)),
            (504, "timeout", (Reason::ApiUnavailable, true)),
            (
                500,
                "etcdserver: mvcc: database space exceeded",
                (Reason::QuotaExceeded, false),
            ),
            (
                403,
                "secrets is forbidden: exceeded quota: q",
                (Reason::QuotaExceeded, false),
            ),
            (
                403,
                "machines is forbidden: cannot find RESTMapping for APIVersion a/v1 Kind Owner",
                (Reason::ApiUnavailable, true),
            ),
            (
                403,
                "secrets is forbidden: User cannot",
                (Reason::PermissionDenied, false),
            ),
            (400, denied, (Reason::AdmissionDenied, false)),
            (422, policy, (Reason::AdmissionDenied, false)),
            (
                422,
                "spec.x: Required value",
                (Reason::ResourceConversionFailed, false),
            ),
        ] {
            assert_eq!(reason(code, message), expected, "{code} {message}");
        }
    }

    #[test]
    fn losing_the_lease_is_not_a_failure() {
        let refused = kube::Error::Service(Box::new(Refused));
        assert!(matches!(
            of_client(&refused, String::new()),
            HookError::NotLeading
        ));
    }
}
