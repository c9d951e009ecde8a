//! Standing aside: whoever owned a cluster has ended all that it began before anybody migrates it.
//!
//! The lock keeps new passes from starting. A pass that read the cluster before the lock was written goes on, and
//! would write what it decided then. So each pass is counted here from before it reads; the operator that owns the
//! cluster acknowledges the lock when none is left. What is under way in a process that has lost its lease writes
//! nothing any more ([`support::fence`]), and its successor reads the lock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::hosted_cluster::Id;

/// The passes that are under way, by hosted cluster.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    clusters: Mutex<HashMap<Id, Weak<RwLock<()>>>>,
}

/// A pass that is under way.
pub(crate) type Pass = OwnedRwLockReadGuard<()>;

// === impl Passes ===

impl Passes {
    /// Begins a pass over something of this cluster. To be called before anything of it is read.
    pub(crate) async fn begin(&self, id: &Id) -> Pass {
        self.of(id).read_owned().await
    }

    /// Waits until every pass that has begun so far has ended.
    pub(crate) async fn ended(&self, id: &Id) {
        drop(self.of(id).write_owned().await);
    }

    fn of(&self, id: &Id) -> Arc<RwLock<()>> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(passes) = clusters.get(id).and_then(Weak::upgrade) {
            return passes;
        }
        // Those that nothing is under way for are forgotten now and then, so that the map does not grow.
        clusters.retain(|_, passes| passes.strong_count() > 0);
        let passes = Arc::default();
        clusters.insert(id.clone(), Arc::downgrade(&passes));
        passes
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn id(name: &str) -> Id {
        Id {
            namespace: "clusters".to_owned(),
            name: name.to_owned(),
        }
    }

    #[tokio::test]
    async fn all_that_began_has_to_end_and_nothing_else_is_waited_for() {
        let passes = Passes::default();
        let first = passes.begin(&id("one")).await;
        let second = passes.begin(&id("one")).await;
        let _other = passes.begin(&id("two")).await;
        let one = id("one");
        let mut ended = Box::pin(passes.ended(&one));
        assert!(ended.as_mut().now_or_never().is_none());
        drop(first);
        assert!(ended.as_mut().now_or_never().is_none());
        drop(second);
        ended.await;
        assert_eq!(passes.clusters.lock().unwrap().len(), 2);
        passes.begin(&id("three")).await;
        assert_eq!(passes.clusters.lock().unwrap().len(), 2, "one is forgotten");
    }
}
