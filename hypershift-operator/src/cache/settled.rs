//! Passes after which nothing was left to do. While all that they were over is unchanged, another pass would find the
//! same: it is left out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use support::controller::{Action, ObjectKey};
use tokio::time::Instant;

use super::FULL_CHECK;
use super::index::{Index, Look};

/// The passes, by object.
#[derive(Debug, Default)]
pub(crate) struct Settled(Mutex<HashMap<ObjectKey, Pass>>);

/// When a settled object is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// When it changes.
    OnChange,
    /// Now and then, for what changes without a request for a pass. That takes no request to the API server.
    Every(Duration),
    /// At this time, whether anything has changed or not.
    At(Instant),
}

#[derive(Debug)]
struct Pass {
    look: Look,
    again: Again,
    /// When it is not relied on any more.
    until: Instant,
}

// === impl Settled ===

impl Settled {
    /// When to come back to an object whose last pass would find the same again. What has changed is forgotten, since
    /// the pass that follows may fail.
    pub(crate) fn unchanged(&self, object: &ObjectKey, index: &Index) -> Option<Action> {
        let now = Instant::now();
        let mut passes = self.passes();
        let pass = passes.get(object)?;
        if pass.until > now && index.is_unchanged(&pass.look) {
            return Some(pass.again.action(now));
        }
        passes.remove(object);
        None
    }

    /// A pass has ended with nothing left to do. `look` was taken before it read anything.
    pub(crate) fn settle(&self, object: ObjectKey, look: Look, again: Again) {
        let full = Instant::now() + FULL_CHECK;
        let until = match again {
            Again::OnChange | Again::Every(_) => full,
            Again::At(time) => time.min(full),
        };
        self.passes().insert(object, Pass { look, again, until });
    }

    /// The next pass goes through everything.
    pub(crate) fn forget(&self, object: &ObjectKey) {
        self.passes().remove(object);
    }

    fn passes(&self) -> MutexGuard<'_, HashMap<ObjectKey, Pass>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Again ===

impl From<Again> for Action {
    fn from(again: Again) -> Self {
        again.action(Instant::now())
    }
}

impl Again {
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
    use crate::cache::index::SECRETS;

    #[tokio::test(start_paused = true)]
    async fn a_settled_object_is_left_alone_until_its_time() {
        let index = Index::new(&[SECRETS]);
        index.observe::<DynamicObject>(SECRETS, &Ok(Event::InitDone));
        let look = || index.look("a").unwrap();
        let key = |name: &str| ObjectKey::new("clusters", name);
        let settled = Settled::default();
        let pause = Duration::from_secs(15);
        settled.settle(key("often"), look(), Again::Every(pause));
        settled.settle(key("timed"), look(), Again::At(Instant::now() + pause));
        settled.settle(key("quiet"), look(), Again::OnChange);
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
