//! What an error of a controller must tell: its reason, its object, and when to try again.

use std::error::Error;
use std::time::Duration;

use kube::runtime::utils;

/// The pause after a first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// An error that can be told in a metric and in an Event.
pub trait Report: Error {
    /// A CamelCase word of a closed set: metric label and Event reason at once.
    fn reason(&self) -> &'static str;

    /// When to try again.
    fn retry(&self) -> Retry;
}

/// When to try again after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Somebody else was quicker: look again and decide anew.
    AtOnce,
    /// With growing pauses.
    Backoff,
}

/// Pauses between attempts: 1 s, 2 s, 4 s, 8 s, then 10 s, until an attempt succeeds.
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    failures: u32,
}

/// The reason for an error of the client: a closed set, by whose fault it is.
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
        // The rest is about connections, and the enum may grow.
        _ => "Unreachable",
    }
}

/// Whether an error is the answer to a write whose precondition no longer held.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the API server said that there is no such thing.
pub fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

// === impl Backoff ===

impl Backoff {
    /// The pause after one more failure.
    pub fn pause(&mut self, retry: Retry) -> Duration {
        match retry {
            // Not quite: two writers that meet again and again must not fill the server with it.
            Retry::AtOnce => FIRST_PAUSE / 10,
            Retry::Backoff => {
                let pause = FIRST_PAUSE * 2_u32.pow(self.failures.min(10));
                self.failures = self.failures.saturating_add(1);
                pause.min(LONGEST_PAUSE)
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

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..6)
            .map(|_| backoff.pause(Retry::Backoff).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
        assert!(backoff.pause(Retry::AtOnce) < FIRST_PAUSE);
    }

    #[test]
    fn reasons_are_told_by_whose_fault_it_is() {
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
}
