//! The right to write, and its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Settings;

/// Longer than any process lives.
const FOREVER: Duration = Duration::from_hours(24 * 365 * 10);

/// The right to write, for as long as it is held. Clones are of the same term.
#[derive(Debug, Clone)]
pub struct Claim {
    lease: Arc<str>,
    identity: Arc<str>,
    epoch: i32,
    until: watch::Receiver<Option<Instant>>,
}

/// One time of leading; ends the claims to it.
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

    /// Ends it: from now on nothing is written for it.
    pub fn end(&self) {
        self.0.send_replace(None);
    }
}

// === impl Claim ===

impl Claim {
    /// The claim of a process that runs alone: it is held for ever, in epoch 0.
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

    /// Whether something may be written now.
    pub fn is_held(&self) -> bool {
        self.until
            .borrow()
            .is_some_and(|until| Instant::now() < until)
    }

    /// Completes when nothing may be written any more.
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
