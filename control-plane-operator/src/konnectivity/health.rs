//! Whether DNS of the hosted cluster works, and when to try it again. No I/O; callers pass the time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Time between two attempts after a failure.
pub(crate) const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The state of DNS of the hosted cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It works, as far as is known.
    Healthy,
    /// It failed to resolve a name that the management cluster resolves.
    Failed,
}

/// Tracks failures. At most one attempt runs while the state is [`State::Failed`].
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<Failure>>);

/// Since when it has failed.
#[derive(Debug, Clone, Copy)]
struct Failure {
    last_attempt: Instant,
    is_retrying: bool,
}

/// Permission for one lookup. Dropping it without an outcome does not change the state.
#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    health: &'a Health,
    is_retry: bool,
}

// === impl Health ===

impl Health {
    /// The state.
    pub(crate) fn state(&self) -> State {
        match *self.failure() {
            None => State::Healthy,
            Some(_) => State::Failed,
        }
    }

    /// Permission for a lookup; none while it is not due after a failure.
    pub(crate) fn attempt(&self, now: Instant) -> Option<Attempt<'_>> {
        let mut failure = self.failure();
        let is_retry = failure.is_some();
        if let Some(failure) = &mut *failure {
            let is_due = now.duration_since(failure.last_attempt) >= RETRY_INTERVAL;
            if failure.is_retrying || !is_due {
                return None;
            }
            failure.is_retrying = true;
            failure.last_attempt = now;
        }
        Some(Attempt {
            health: self,
            is_retry,
        })
    }

    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    /// The lookup succeeded. Returns whether this ends a failure.
    pub(crate) fn succeeded(self) -> bool {
        self.health.failure().take().is_some()
    }

    /// The lookup failed, and the management cluster resolves the name. Returns whether this is a new failure.
    pub(crate) fn failed(self, now: Instant) -> bool {
        let mut failure = self.health.failure();
        let is_new = failure.is_none();
        // Failures of lookups that began before the first one do not postpone the retry.
        failure.get_or_insert(Failure {
            last_attempt: now,
            is_retrying: false,
        });
        is_new
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.is_retry
            && let Some(failure) = &mut *self.health.failure()
        {
            failure.is_retrying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time after the start of a test.
    fn at(seconds: u64) -> Instant {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *START.get_or_init(Instant::now) + Duration::from_secs(seconds)
    }

    fn failed_at(seconds: u64) -> Health {
        let health = Health::default();
        assert!(health.attempt(at(seconds)).unwrap().failed(at(seconds)));
        health
    }

    #[test]
    fn a_healthy_state_allows_parallel_lookups() {
        let health = Health::default();
        let first = health.attempt(at(0)).unwrap();
        let second = health.attempt(at(0)).unwrap();
        assert!(!first.succeeded());
        drop(second);
        assert_eq!(health.state(), State::Healthy);
    }

    #[test]
    fn the_first_retry_is_due_after_the_interval() {
        let health = failed_at(10);
        assert_eq!(health.state(), State::Failed);
        assert!(health.attempt(at(39)).is_none());
        assert!(health.attempt(at(40)).is_some());
    }

    #[test]
    fn at_most_one_retry_is_in_flight() {
        let health = failed_at(0);
        let retry = health.attempt(at(30)).unwrap();
        assert!(health.attempt(at(100)).is_none());
        assert!(!retry.failed(at(100)));
        // The interval begins with the attempt.
        assert!(health.attempt(at(59)).is_none());
        assert!(health.attempt(at(100)).is_some());
    }

    #[test]
    fn a_cancelled_retry_is_not_in_flight_any_more() {
        let health = failed_at(0);
        drop(health.attempt(at(30)).unwrap());
        assert_eq!(health.state(), State::Failed);
        assert!(health.attempt(at(31)).is_none());
        assert!(health.attempt(at(60)).is_some());
    }

    #[test]
    fn any_success_clears_the_failure() {
        let health = Health::default();
        let slow = health.attempt(at(0)).unwrap();
        assert!(health.attempt(at(1)).unwrap().failed(at(1)));
        assert!(slow.succeeded());
        assert_eq!(health.state(), State::Healthy);
        let health = failed_at(0);
        assert!(health.attempt(at(30)).unwrap().succeeded());
        assert_eq!(health.state(), State::Healthy);
    }

    #[test]
    fn later_failures_do_not_postpone_the_retry() {
        let health = Health::default();
        let slow = health.attempt(at(0)).unwrap();
        assert!(health.attempt(at(0)).unwrap().failed(at(1)));
        assert!(!slow.failed(at(20)));
        assert!(health.attempt(at(31)).is_some());
    }
}
