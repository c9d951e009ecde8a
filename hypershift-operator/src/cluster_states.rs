//! The last evaluation of each HostedCluster, for gauges and for finding changed owners. It is in memory only: each leader
//! evaluates all HostedClusters again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ownership::{Evaluation, Owner};
use support::reconcile::{Backoff, Retry};

use crate::cluster_ref::Id;
use crate::metrics::Metrics;

/// The evaluations.
#[derive(Debug)]
pub(crate) struct ClusterStates {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct State {
    evaluations: HashMap<Id, Evaluation>,
    failing: HashMap<Id, Backoff>,
}

// === impl ClusterStates ===

impl ClusterStates {
    pub(crate) fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            state: Mutex::default(),
            metrics: Arc::clone(metrics),
        }
    }

    /// A HostedCluster was reconciled.
    pub(crate) fn record(&self, id: Id, evaluation: Evaluation) {
        let mut state = self.state();
        state.failing.remove(&id);
        state.evaluations.insert(id, evaluation);
        self.count(&state);
    }

    /// A HostedCluster was deleted.
    pub(crate) fn forget(&self, id: &Id) {
        let mut state = self.state();
        state.failing.remove(id);
        state.evaluations.remove(id);
        self.count(&state);
    }

    /// All others were deleted.
    pub(crate) fn retain(&self, ids: &HashSet<Id>) {
        let mut state = self.state();
        state.failing.retain(|id, _| ids.contains(id));
        state.evaluations.retain(|id, _| ids.contains(id));
        self.count(&state);
    }

    /// A reconcile failed; returns the backoff before the next attempt.
    pub(crate) fn record_failure(&self, id: Id, retry: Retry) -> Duration {
        let mut state = self.state();
        let pause = state.failing.entry(id).or_default().pause(retry);
        self.count(&state);
        pause
    }

    /// The last evaluation; none of a HostedCluster whose first reconcile has not succeeded.
    pub(crate) fn evaluation(&self, id: &Id) -> Option<Evaluation> {
        self.state().evaluations.get(id).copied()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, state: &State) {
        for owner in Owner::ALL {
            let evaluations = state.evaluations.values();
            let count = evaluations
                .filter(|evaluation| evaluation.owner == owner)
                .count();
            self.metrics.owned(owner, count);
        }
        let evaluations = state.evaluations.values();
        self.metrics
            .invalid(evaluations.filter_map(|evaluation| evaluation.invalid));
        self.metrics.failing(state.failing.len());
    }
}

impl Drop for ClusterStates {
    fn drop(&mut self) {
        // Only the leader reports these gauges.
        self.count(&State::default());
        self.metrics.legacy(false, false);
    }
}
