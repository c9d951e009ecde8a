//! The claim of a leader to write, and its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Settings;

/// Longer than any process runs.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 10);

/// The claim to write while the lease is held. Clones belong to the same term.
#[derive(Debug, Clone)]
pub struct Claim {
    lease: Arc<str>,
    identity: Arc<str>,
    epoch: i32,
    until: watch::Receiver<Option<Instant>>,
}

/// A term of leadership; ends its claims.
#[derive(Debug)]
pub struct Term(watch::Sender<Option<Instant>>);

// === impl Term ===

impl Term {
    pub(super) fn begin(settings: &Settings, epoch: i32, until: Instant) -> (Self, Claim) {
        let (sender, receiver) = watch::channel(Some(until));
        let claim = Claim {
            lease: settings.name.as_str().into(),
            identity: settings.identity.as_str().into(),
            epoch,
            until: receiver,
        };
        (Self(sender), claim)
    }

    pub(super) fn extend(&self, until: Instant) {
        self.0.send_replace(Some(until));
    }

    /// Ends the term: its writes are rejected from now on.
    pub fn end(&self) {
        self.0.send_replace(None);
    }
}

// === impl Claim ===

impl Claim {
    /// The claim of a process without leader election: it never ends, and has epoch 0.
    pub fn alone(settings: &Settings) -> (Term, Self) {
        Term::begin(settings, 0, Instant::now() + FOREVER)
    }

    /// A claim that is held until its term is ended.
    #[cfg(any(test, feature = "testing"))]
    pub fn for_tests(lease: &str, identity: &str, epoch: i32) -> (Term, Self) {
        let (sender, receiver) = watch::channel(Some(Instant::now() + FOREVER));
        let claim = Self {
            lease: lease.into(),
            identity: identity.into(),
            epoch,
            until: receiver,
        };
        (Term(sender), claim)
    }

    /// The lease's name.
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// The holder.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The fencing epoch: greater than that of every earlier holder.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// Whether writes are allowed now.
    pub fn is_held(&self) -> bool {
        self.until
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Completes when writes are no longer allowed.
    pub async fn ended(&mut self) {
        loop {
            let until = *self.until.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else {
                return;
            };
            tokio::select! {
                () = sleep_until(until) => {}
                changed = self.until.changed() => if changed.is_err() { return },
            }
        }
    }
}
