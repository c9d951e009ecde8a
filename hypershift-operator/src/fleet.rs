//! What was decided about each hosted cluster, for the gauges and for what has to be decided anew. Kept in memory: it
//! is made again from evidence by every leader.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ownership::{Evaluation, Owner};
use support::reconcile::{Backoff, Retry};

use crate::hosted_cluster::Id;
use crate::metrics::Metrics;

/// The verdicts.
#[derive(Debug)]
pub(crate) struct Fleet {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct State {
    verdicts: HashMap<Id, Evaluation>,
    failing: HashMap<Id, Backoff>,
}

// === impl Fleet ===

impl Fleet {
    pub(crate) fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            state: Mutex::default(),
            metrics: Arc::clone(metrics),
        }
    }

    /// A hosted cluster was dealt with.
    pub(crate) fn decided(&self, id: Id, verdict: Evaluation) {
        let mut state = self.state();
        state.failing.remove(&id);
        state.verdicts.insert(id, verdict);
        self.count(&state);
    }

    /// A hosted cluster is gone.
    pub(crate) fn forget(&self, id: &Id) {
        let mut state = self.state();
        state.failing.remove(id);
        state.verdicts.remove(id);
        self.count(&state);
    }

    /// All others are gone.
    pub(crate) fn keep(&self, ids: &HashSet<Id>) {
        let mut state = self.state();
        state.failing.retain(|id, _| ids.contains(id));
        state.verdicts.retain(|id, _| ids.contains(id));
        self.count(&state);
    }

    /// A hosted cluster could not be dealt with; gives the pause before the next attempt.
    pub(crate) fn failed(&self, id: Id, retry: Retry) -> Duration {
        let mut state = self.state();
        let pause = state.failing.entry(id).or_default().pause(retry);
        self.count(&state);
        pause
    }

    /// Whether a verdict is other than the last one.
    pub(crate) fn differs(&self, id: &Id, verdict: Evaluation) -> bool {
        self.state().verdicts.get(id) != Some(&verdict)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, state: &State) {
        for owner in Owner::ALL {
            let verdicts = state.verdicts.values();
            let count = verdicts.filter(|verdict| verdict.owner == owner).count();
            self.metrics.owned(owner, count);
        }
        let verdicts = state.verdicts.values();
        self.metrics
            .invalid(verdicts.filter_map(|verdict| verdict.invalid));
        self.metrics.failing(state.failing.len());
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Who does not lead knows nothing.
        self.count(&State::default());
        self.metrics.legacy(false, false);
    }
}
