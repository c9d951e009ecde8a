//! When the cleanup of an unreachable cluster is given up. Pure.

use jiff::{SignedDuration, Timestamp};

use super::super::error::Error;

/// Consecutive failures to connect after which the cleanup is skipped.
const FAILURE_THRESHOLD: u32 = 5;
/// Time since the first of them after which the cleanup is skipped.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(5);
/// HTTP statuses of a server that does not answer: request timeout, unavailable, timeout of a server behind it.
const UNAVAILABLE: [u16; 3] = [408, 503, 504];

/// Why the cleanup is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    KubeApiServerUnavailable,
    MaxConnectionFailuresExceeded,
    ConnectionFailureTimeout,
}

/// Consecutive failures to connect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Failures {
    count: u32,
    first: Option<Timestamp>,
}

// === impl Failures ===

impl Failures {
    /// Counts the result of a pass. Other errors do not count: the server has answered.
    pub(super) fn record(&mut self, is_failure: bool, now: Timestamp) {
        if !is_failure {
            *self = Self::default();
            return;
        }
        self.count += 1;
        self.first.get_or_insert(now);
    }

    pub(super) fn skip(&self, now: Timestamp) -> Option<Skip> {
        if self.count >= FAILURE_THRESHOLD {
            return Some(Skip::MaxConnectionFailuresExceeded);
        }
        let waited = now.duration_since(self.first?);
        (waited >= TIMEOUT).then_some(Skip::ConnectionFailureTimeout)
    }
}

// === impl Skip ===

impl Skip {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::KubeApiServerUnavailable => "KubeAPIServerUnavailable",
            Self::MaxConnectionFailuresExceeded => "MaxConnectionFailuresExceeded",
            Self::ConnectionFailureTimeout => "ConnectionFailureTimeout",
        }
    }
}

/// Whether the API server could not be reached.
pub(super) fn is_connection(error: &Error) -> bool {
    match error {
        Error::Client { source, .. } => is_unreachable(source),
        Error::Apply(error) => error.client().is_some_and(is_unreachable),
        Error::Several(errors) => errors.iter().any(is_connection),
        Error::Guest(_) | Error::Desired(_) | Error::Waiting { .. } | Error::Form { .. } => false,
    }
}

fn is_unreachable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => UNAVAILABLE.contains(&status.code),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleanup_is_skipped_after_failures_or_a_time() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let mut failures = Failures::default();
        for _ in 0..FAILURE_THRESHOLD - 1 {
            failures.record(true, at(0));
            assert_eq!(failures.skip(at(4)), None);
        }
        assert_eq!(failures.skip(at(5)), Some(Skip::ConnectionFailureTimeout));
        let mut recovered = failures;
        recovered.record(false, at(5));
        assert_eq!(recovered.skip(at(60)), None);
        failures.record(true, at(1));
        assert_eq!(
            failures.skip(at(1)),
            Some(Skip::MaxConnectionFailuresExceeded)
        );
    }

    #[test]
    fn only_unreachable_servers_count() {
        let api = |code: u16| {
            let status = kube::core::Status::failure("m", "r").with_code(code);
            Error::client("list")(kube::Error::Api(Box::new(status)))
        };
        for (error, expected) in [
            (api(503), true),
            (api(504), true),
            (api(403), false),
            (api(500), false),
            (Error::waiting("a"), false),
            (Error::Several(vec![api(403), api(408)]), true),
        ] {
            assert_eq!(is_connection(&error), expected, "{error}");
        }
    }
}
