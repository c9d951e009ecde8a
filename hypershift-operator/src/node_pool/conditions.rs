//! The conditions of a pool during a reconcile: unchanged ones keep their transition time.

use api::conditions::{PoolCondition, Status};
use api::hypershift::v1beta1::node_pool::NodePoolCondition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The longest message that the API takes, in bytes, and a little less.
const LONGEST: usize = 32_000;

/// The conditions of one reconciliation.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    list: Vec<NodePoolCondition>,
    /// Those of the reconcile before. A condition may be set more than once until all about it is known, and only the last
    /// state is a transition.
    before: Vec<NodePoolCondition>,
    generation: Option<i64>,
    now: Timestamp,
}

// === impl Conditions ===

impl Conditions {
    /// The previous conditions, to be updated for this generation.
    pub(crate) fn new(
        before: Vec<NodePoolCondition>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> Self {
        Self {
            list: before.clone(),
            before,
            generation,
            now,
        }
    }

    /// Sets a condition.
    pub(crate) fn set(
        &mut self,
        about: PoolCondition,
        status: impl Into<Status>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let status = status.into().as_str();
        let mut message = message.into();
        cut(&mut message);
        let is_it = |it: &&NodePoolCondition| it.type_ == about.as_str();
        let before = self.before.iter().find(is_it);
        let since = before
            .filter(|it| it.status == status)
            .map(|it| it.last_transition_time.clone());
        let condition = NodePoolCondition {
            type_: about.as_str().to_owned(),
            status: status.to_owned(),
            severity: None,
            last_transition_time: since.unwrap_or(Time(self.now)),
            reason: Some(reason.into()),
            message: Some(message).filter(|it| !it.is_empty()),
            observed_generation: self.generation,
        };
        match self.list.iter().position(|it| it.type_ == about.as_str()) {
            Some(index) => self.list[index] = condition,
            None => self.list.push(condition),
        }
    }

    /// All is well in this regard.
    pub(crate) fn good(&mut self, about: PoolCondition, message: impl Into<String>) {
        self.set(about, Status::True, "AsExpected", message);
    }

    /// It is not the case, and that is as it should be.
    pub(crate) fn off(&mut self, about: PoolCondition, message: impl Into<String>) {
        self.set(about, Status::False, "AsExpected", message);
    }

    /// Removes a condition.
    pub(crate) fn clear(&mut self, about: PoolCondition) {
        self.list.retain(|it| it.type_ != about.as_str());
    }

    /// Whether there is one of this type.
    pub(crate) fn has(&self, about: PoolCondition) -> bool {
        self.list().iter().any(|it| it.type_ == about.as_str())
    }

    /// All of them.
    pub(crate) fn list(&self) -> &[NodePoolCondition] {
        &self.list
    }
}

fn cut(message: &mut String) {
    let mut end = LONGEST.min(message.len());
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_conditions_keep_their_transition_time() {
        let (first, second): (Timestamp, Timestamp) = (
            "2026-11-22T00:00:00Z".parse().unwrap(),
            "2026-11-22T01:00:00Z".parse().unwrap(),
        );
        let mut before = Conditions::new(Vec::new(), Some(1), first);
        before.good(PoolCondition::Ready, "3 of 3 nodes are ready");
        before.good(PoolCondition::AllMachinesReady, "");
        before.good(PoolCondition::IgnitionEndpointAvailable, "");
        let mut after = Conditions::new(before.list().to_vec(), Some(2), second);
        after.good(PoolCondition::Ready, "4 of 4 nodes are ready");
        after.set(
            PoolCondition::AllMachinesReady,
            Status::False,
            "Deleting",
            "ü".repeat(20_000),
        );
        after.clear(PoolCondition::IgnitionEndpointAvailable);
        let [ready, machines] = after.list() else {
            panic!("{:?}", after.list());
        };
        assert_eq!(
            (ready.last_transition_time.0, ready.observed_generation),
            (first, Some(2))
        );
        assert_eq!(machines.last_transition_time.0, second);
        assert!(machines.message.as_ref().unwrap().len() <= LONGEST);
    }

    /// A write of the status that changes nothing would cause the next reconcile, and so on.
    #[test]
    fn only_the_last_state_of_a_reconcile_is_a_transition() {
        let (first, second): (Timestamp, Timestamp) = (
            "2026-11-22T00:00:00Z".parse().unwrap(),
            "2026-11-22T01:00:00Z".parse().unwrap(),
        );
        let about = PoolCondition::KubeVirtNodesLiveMigratable;
        let mut before = Conditions::new(Vec::new(), Some(1), first);
        before.off(about, "");
        for clears in [false, true] {
            let mut after = Conditions::new(before.list().to_vec(), Some(1), second);
            after.good(about, "");
            if clears {
                after.clear(about);
            }
            after.off(about, "");
            assert_eq!(after.list(), before.list(), "{clears}");
        }
    }
}
