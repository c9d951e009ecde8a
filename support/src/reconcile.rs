//! Errors of reconcilers: their reason, and when to retry.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use kube::runtime::utils;

/// The backoff after a first failure.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// The longest backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// What the API server answers, with code 500, when the object of a server-side apply does not match its schema
/// (kubernetes/kubernetes#118476).
const NOT_TYPED: &str = "failed to create typed ";

/// An error that is reported in metrics and Events.
pub trait Report: Error {
    /// A CamelCase word from a closed set: the metric label and the reason of conditions.
    fn reason(&self) -> &'static str;

    /// When to retry.
    fn retry(&self) -> Retry;
}

/// When to retry after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Soon: another writer was faster, so the object has to be read again.
    AtOnce,
    /// With exponential backoff.
    Backoff,
}

/// Exponential backoff: 1 s, 2 s, 4 s, 8 s, then 10 s, until an attempt succeeds.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    failures: u32,
}

/// The reason of a client error, from a closed set.
pub fn client_reason(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) => match status.code {
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "Conflict",
            400..500 => "Refused",
            _ => "ServerError",
        },
        kube::Error::SerdeError(_) => "UnexpectedAnswer",
        kube::Error::Service(error) if error.is::<crate::fence::Refused>() => "NotLeading",
        kube::Error::Service(error) if error.is::<crate::deadline::TimedOut>() => "Timeout",
        // The other variants are about connections.
        _ => "Unreachable",
    }
}

/// Whether the precondition of a write failed.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the object, or its kind, does not exist.
pub fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the API server rejects the object because it does not match its schema: a retry gets the same response until
/// the object, the schema or the writer changes.
pub fn is_invalid(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => match status.code {
            400 | 422 => true,
            // Other responses with this code are transient: of etcd, and of webhooks that cannot be called.
            500 => status.message.starts_with(NOT_TYPED),
            _ => false,
        },
        _ => false,
    }
}

// === impl Backoff ===

impl Backoff {
    /// The backoff after one more failure.
    pub fn pause(&mut self, retry: Retry) -> Duration {
        match retry {
            // Not at once: two writers in conflict must not flood the API server.
            Retry::AtOnce => MIN_BACKOFF / 10,
            Retry::Backoff => {
                let pause = MIN_BACKOFF * 2_u32.pow(self.failures.min(10));
                self.failures = self.failures.saturating_add(1);
                pause.min(MAX_BACKOFF)
            }
        }
    }
}

/// For streams of the client's runtime.
impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.pause(Retry::Backoff))
    }
}

impl utils::Backoff for Backoff {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

// === impl Infallible ===

/// For work that cannot fail.
impl Report for Infallible {
    fn reason(&self) -> &'static str {
        match *self {}
    }

    fn retry(&self) -> Retry {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn backoff_grows_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let backoffs: Vec<_> = (0..6)
            .map(|_| backoff.pause(Retry::Backoff).as_secs())
            .collect();
        assert_eq!(backoffs, [1, 2, 4, 8, 10, 10]);
        assert!(backoff.pause(Retry::AtOnce) < MIN_BACKOFF);
    }

    #[test]
    fn client_errors_have_reasons_from_a_closed_set() {
        for (code, reason) in [
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "NotFound"),
            (409, "Conflict"),
            (422, "Refused"),
            (503, "ServerError"),
        ] {
            let error = kube::Error::Api(Box::new(Status::failure("", "").with_code(code)));
            assert_eq!(client_reason(&error), reason);
        }
        let refused = kube::Error::Service(Box::new(crate::fence::Refused));
        assert_eq!(client_reason(&refused), "NotLeading");
    }

    #[test]
    fn objects_that_do_not_match_their_schema_are_invalid() {
        let typed = "failed to create typed live object (clusters/workers; hypershift.openshift.io/v1beta1, \
            Kind=NodePool): .spec.replicas: expected numeric (int), got string";
        let webhook = "Internal error occurred: failed calling webhook \"x.example.com\"";
        for (code, message, expected) in [
            (
                400,
                "the body of the request was in an unknown format",
                true,
            ),
            (403, "forbidden", false),
            (404, "not found", false),
            (409, "the object has been modified", false),
            (413, "request entity too large", false),
            (422, "spec.replicas: Invalid value", true),
            (429, "too many requests", false),
            (500, typed, true),
            (500, "etcdserver: request timed out", false),
            (500, webhook, false),
            (503, typed, false),
        ] {
            let error = kube::Error::Api(Box::new(Status::failure(message, "").with_code(code)));
            assert_eq!(is_invalid(&error), expected, "{code} {message}");
        }
        let refused = kube::Error::Service(Box::new(crate::fence::Refused));
        assert!(!is_invalid(&refused));
    }
}
