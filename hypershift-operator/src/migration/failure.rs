//! From errors to the closed set of reasons: whose fault it is, and whether time may mend it.

use migration::failure::Reason;
use support::error::chain;
use support::fence::Refused;

use crate::error::Error;

/// Why a step cannot be done.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It may work in a moment: the API server is busy, or somebody else was quicker.
    Passing(Reason, String),
    /// It will not work without somebody who changes something.
    Lasting(Reason, String),
    /// We do not lead any more: somebody else goes on.
    Deposed,
}

/// The trouble that an error means.
pub(crate) fn trouble(error: &Error) -> Trouble {
    let told = chain(error);
    match error.client() {
        Some(error) => of_client(error, told),
        None => Trouble::Passing(Reason::Conflict, told),
    }
}

/// The trouble that an answer of the API server means.
pub(crate) fn of_client(error: &kube::Error, told: String) -> Trouble {
    match error {
        kube::Error::Api(status) => of_status(status.code, &status.message, told),
        kube::Error::Service(error) if error.is::<Refused>() => Trouble::Deposed,
        _ => Trouble::Passing(Reason::ApiUnavailable, told),
    }
}

fn of_status(code: u16, message: &str, told: String) -> Trouble {
    match code {
        403 if message.contains("exceeded quota") => Trouble::Lasting(Reason::QuotaExceeded, told),
        _ if message.contains("admission webhook")
            || message.contains("ValidatingAdmissionPolicy") =>
        {
            Trouble::Lasting(Reason::AdmissionDenied, told)
        }
        _ if message.contains("database space exceeded") => {
            Trouble::Lasting(Reason::QuotaExceeded, told)
        }
        401 | 403 => Trouble::Lasting(Reason::PermissionDenied, told),
        404 | 409 | 410 => Trouble::Passing(Reason::Conflict, told),
        429 | 500.. => Trouble::Passing(Reason::ApiUnavailable, told),
        _ => Trouble::Lasting(Reason::ResourceConversionFailed, told),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn reason(code: u16, message: &str) -> (Reason, bool) {
        let status = Status::failure(message, "").with_code(code);
        match of_client(&kube::Error::Api(Box::new(status)), String::new()) {
            Trouble::Passing(reason, _) => (reason, true),
            Trouble::Lasting(reason, _) => (reason, false),
            Trouble::Deposed => unreachable!("an answer of the server"),
        }
    }

    #[test]
    fn m10_m11_answers_of_the_api_server_have_their_reasons() {
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
    fn m08_who_does_not_lead_has_failed_at_nothing() {
        let refused = kube::Error::Service(Box::new(Refused));
        assert!(matches!(
            of_client(&refused, String::new()),
            Trouble::Deposed
        ));
    }
}
