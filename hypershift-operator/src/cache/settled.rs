//! Complete reconciles. While everything that one has read is unchanged, another would have the same result: it is
//! skipped.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::controller::{Action, ObjectKey};
use tokio::time::Instant;

use super::FULL_CHECK;
use super::index::{Index, Snapshot};

/// The last complete reconcile of each object.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<HashMap<ObjectKey, Pass>>);

/// When a settled object is reconciled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recheck {
    /// When it changes.
    OnChange,
    /// Also after this interval, for changes that request no reconcile. If there are none, it makes no request.
    Every(Duration),
    /// At this time, whether anything has changed or not.
    At(Instant),
}

#[derive(Debug)]
struct Pass {
    snapshot: Snapshot,
    again: Recheck,
    /// When it expires.
    until: Instant,
}

// === impl Settled ===

impl Settled {
    /// When to reconcile an object again of which nothing has changed since its last complete reconcile. One that has
    /// changed is forgotten, since the reconcile that follows may fail.
    pub(crate) fn unchanged(&self, object: &ObjectKey, index: &Index) -> Option<Action> {
        let now = Instant::now();
        let mut passes = self.passes();
        let pass = passes.get(object)?;
        if pass.until > now && index.is_unchanged(&pass.snapshot) {
            return Some(pass.again.action(now));
        }
        passes.remove(object);
        None
    }

    /// A reconcile has completed. `snapshot` was taken before it read anything.
    pub(crate) fn settle(&self, object: ObjectKey, snapshot: Snapshot, again: Recheck) {
        let full = Instant::now() + FULL_CHECK;
        let until = match again {
            Recheck::OnChange | Recheck::Every(_) => full,
            Recheck::At(time) => time.min(full),
        };
        self.passes().insert(
            object,
            Pass {
                snapshot,
                again,
                until,
            },
        );
    }

    /// The next reconcile reads everything.
    pub(crate) fn forget(&self, object: &ObjectKey) {
        self.passes().remove(object);
    }

    fn passes(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Recheck ===

impl From<Recheck> for Action {
    fn from(again: Recheck) -> Self {
        again.action(Instant::now())
    }
}

impl Recheck {
    fn action(self, now: Instant) -> Action {
        match self {
            Self::OnChange => Action::await_change(),
            Self::Every(pause) => Action::requeue(pause),
            Self::At(time) => Action::requeue(time.saturating_duration_since(now)),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::DynamicObject;
    use kube::runtime::watcher::Event;

    use super::*;
    use crate::cache::index::{Part, SECRETS};

    #[tokio::test(start_paused = true)]
    async fn a_settled_object_is_left_alone_until_its_time() {
        let index = Index::new(&[SECRETS]);
        index.observe::<DynamicObject>(SECRETS, &Ok(Event::InitDone));
        let snapshot = || index.snapshot("a", Part::All).unwrap();
        let key = |name: &str| ObjectKey::new("clusters", name);
        let settled = Settled::default();
        let pause = Duration::from_secs(15);
        settled.settle(key("often"), snapshot(), Recheck::Every(pause));
        settled.settle(
            key("timed"),
            snapshot(),
            Recheck::At(Instant::now() + pause),
        );
        settled.settle(key("quiet"), snapshot(), Recheck::OnChange);
        let unchanged = |name: &str| settled.unchanged(&key(name), &index);
        assert_eq!(unchanged("often"), Some(Action::requeue(pause)));
        assert_eq!(unchanged("timed"), Some(Action::requeue(pause)));
        assert_eq!(unchanged("quiet"), Some(Action::await_change()));
        assert_eq!(unchanged("other"), None);
        tokio::time::advance(pause).await;
        assert_eq!(unchanged("timed"), None, "its time has come");
        assert_eq!(unchanged("often"), Some(Action::requeue(pause)));
        settled.forget(&key("often"));
        assert_eq!(unchanged("often"), None);
        tokio::time::advance(FULL_CHECK).await;
        assert_eq!(unchanged("quiet"), None, "it was long ago");
    }
}
