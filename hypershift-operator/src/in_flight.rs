//! Reconciles in progress, by HostedCluster: a migration starts after the former owner completed all of its own.
//!
//! The lock prevents new reconciles. One that read the cluster before the lock was written continues, and
//! would write what it decided then. So each reconcile registers here before it reads; the operator that owns the
//! cluster acknowledges the lock when none is left. A process that has lost its lease cannot write
//! any more ([`support::fence`]), and the next leader reads the lock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::cluster_ref::Id;

/// The reconciles in progress, by HostedCluster.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    clusters: Mutex<HashMap<Id, Weak<RwLock<()>>>>,
}

/// A reconcile in progress.
pub(crate) type Pass = OwnedRwLockReadGuard<()>;

// === impl InFlight ===

impl InFlight {
    /// Registers a reconcile for this cluster. To be called before anything of it is read.
    pub(crate) async fn begin(&self, id: &Id) -> Pass {
        self.of(id).read_owned().await
    }

    /// Waits until every reconcile that has begun so far has ended.
    pub(crate) async fn ended(&self, id: &Id) {
        drop(self.of(id).write_owned().await);
    }

    fn of(&self, id: &Id) -> Arc<RwLock<()>> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(passes) = clusters.get(id).and_then(Weak::upgrade) {
            return passes;
        }
        // Clusters without reconciles are dropped now and then, so that the map does not grow.
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
    async fn only_reconciles_of_the_cluster_are_waited_for() {
        let passes = InFlight::default();
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
