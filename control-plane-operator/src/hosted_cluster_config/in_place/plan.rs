//! Plans which nodes are upgraded next. Pure.

use std::collections::BTreeMap;

use api::annotations::node_pool::{CURRENT_CONFIG_VERSION, RELEASE_VERSION};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::super::machines::Machine;
use super::{FAILED, IN_PROGRESS};

/// Node annotation: its current configuration; set by the daemon.
pub(super) const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
/// Node annotation: its desired configuration.
pub(super) const DESIRED: &str = "machineconfiguration.openshift.io/desiredConfig";
/// Node annotation: state of the daemon: `Done`, `Working`, `Degraded`. It is `Done` once the node is schedulable
/// again.
const STATE: &str = "machineconfiguration.openshift.io/state";
/// Node annotation: why the daemon failed.
const REASON: &str = "machineconfiguration.openshift.io/reason";

/// A pool with a target configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hosted_cluster_config) struct Pool {
    pub(super) name: String,
    pub(super) target: String,
    pub(super) current: Option<String>,
    /// Maximum number of unavailable nodes.
    pub(super) max_unavailable: usize,
}

/// A Machine of the pool with its Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) machine: String,
    /// The release in the Machine's annotation.
    pub(super) release: Option<String>,
    node: Option<String>,
    current: Option<String>,
    desired: Option<String>,
    is_ready: bool,
    /// Whether no daemon is working on it.
    is_idle: bool,
    /// Why the daemon failed.
    failure: Option<String>,
}

/// The next steps of an upgrade.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Nodes to start with.
    pub(super) start: Vec<String>,
    /// Nodes whose upgrade is in progress.
    pub(super) in_progress: Vec<String>,
    done: usize,
    all: usize,
    failure: Option<String>,
}

/// Plans the next steps. Nodes that are not ready count as unavailable, for whatever reason.
pub(super) fn plan(pool: &Pool, members: &[Member]) -> Plan {
    let mut plan = Plan {
        all: members.len(),
        failure: members.iter().find_map(|member| member.failure.clone()),
        ..Plan::default()
    };
    let mut waiting = Vec::new();
    let mut down = 0;
    for member in members {
        let Some(node) = &member.node else {
            // It will join with the configuration of its bootstrap data.
            continue;
        };
        if !member.is_at_target(pool) && member.desired.as_ref() == Some(&pool.target) {
            plan.in_progress.push(node.clone());
            continue;
        }
        // An upgraded node counts as unavailable until it is ready.
        down += usize::from(!member.is_ready);
        if member.is_at_target(pool) {
            plan.done += 1;
        } else {
            waiting.push((member.is_ready, node.clone()));
        }
    }
    let budget = pool.max_unavailable.saturating_sub(plan.in_progress.len());
    // Nodes that are not ready first, because upgrading them does not reduce availability.
    waiting.sort();
    let ready_budget = budget.saturating_sub(down);
    let mut started_ready = 0;
    for (is_ready, node) in waiting {
        if plan.start.len() == budget || is_ready && started_ready == ready_budget {
            break;
        }
        started_ready += usize::from(is_ready);
        plan.start.push(node);
    }
    plan
}

// === impl Pool ===

impl Pool {
    /// Whether all nodes have the target configuration.
    pub(super) fn is_upgraded(&self) -> bool {
        self.current.as_ref() == Some(&self.target)
    }

    /// Name of the Secret with the payload.
    pub(super) fn token_name(&self) -> String {
        format!("token-{}-{}", self.name, self.target)
    }

    /// Namespace of the upgrade's objects in the hosted cluster.
    pub(super) fn namespace(&self) -> String {
        format!("{}-inplace-upgrade", self.name)
    }
}

// === impl Member ===

impl Member {
    pub(super) fn new(pool: &Pool, machine: &Machine, node: Option<&Node>) -> Self {
        let empty = BTreeMap::new();
        let annotations = node.map_or(&empty, |node| node.annotations());
        let get = |key: &str| annotations.get(key).cloned();
        // Without annotations, a node has its pool's current configuration. The Machine's bootstrap Secret is only a
        // fallback, because Cluster API updates it on existing Machines when the pool changes.
        let begin = format!("user-data-{}-", pool.name);
        let data = machine.data_secret.as_deref();
        let initial_config = data
            .and_then(|name| name.strip_prefix(&begin))
            .map(str::to_owned);
        let state = get(STATE);
        let is_degraded = state.as_deref() == Some("Degraded");
        let failure = is_degraded.then(|| {
            let reason = get(REASON).unwrap_or_else(|| "no reason reported".to_owned());
            format!(
                "node {}: {reason}",
                node.map(kube::ResourceExt::name_any).unwrap_or_default()
            )
        });
        Self {
            machine: machine.name.clone(),
            release: machine.annotations.get(RELEASE_VERSION.key()).cloned(),
            node: node.map(kube::ResourceExt::name_any),
            current: get(CURRENT)
                .or_else(|| pool.current.clone())
                .or(initial_config),
            desired: get(DESIRED),
            is_ready: node.is_some_and(is_ready),
            is_idle: state.is_none_or(|state| state == "Done"),
            failure,
        }
    }

    /// Whether it has the target configuration, and no change is pending.
    fn is_at_target(&self, pool: &Pool) -> bool {
        let is_target = |it: &String| *it == pool.target;
        self.is_idle
            && self.current.as_ref().is_some_and(is_target)
            && self.desired.as_ref().is_none_or(is_target)
    }
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

// === impl Plan ===

impl Plan {
    /// Whether a daemon is needed.
    pub(super) fn is_in_progress(&self) -> bool {
        !self.start.is_empty() || !self.in_progress.is_empty()
    }

    /// Whether every Machine has a Node with the target configuration.
    pub(super) fn is_done(&self) -> bool {
        self.done == self.all
    }

    /// Returns the status annotations of the MachineSet.
    pub(super) fn annotations(&self, pool: &Pool) -> BTreeMap<&'static str, Option<String>> {
        let progress = format!("{} of {} nodes have {}", self.done, self.all, pool.target);
        let (in_progress, stuck) = match &self.failure {
            _ if self.is_done() => (None, None),
            Some(failure) => (None, Some(failure.clone())),
            None => (Some(progress), None),
        };
        let mut all = BTreeMap::from([(IN_PROGRESS, in_progress), (FAILED, stuck)]);
        if self.is_done() {
            all.insert(CURRENT_CONFIG_VERSION.key(), Some(pool.target.clone()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(max_unavailable: usize) -> Pool {
        Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: Some("old".to_owned()),
            max_unavailable,
        }
    }

    fn member(node: &str, current: &str, desired: &str, is_ready: bool) -> Member {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Member {
            machine: format!("m-{node}"),
            node: some(node),
            current: some(current),
            desired: some(desired),
            is_ready,
            is_idle: true,
            ..Member::default()
        }
    }

    fn at_work(member: Member) -> Member {
        Member {
            is_idle: false,
            ..member
        }
    }

    #[test]
    fn max_unavailable_is_respected() {
        let old = |node: &str| member(node, "old", "old", true);
        for (name, most, members, begin) in [
            (
                "one of three",
                1,
                vec![old("a"), old("b"), old("c")],
                vec!["a"],
            ),
            (
                "two of three",
                2,
                vec![old("a"), old("b"), old("c")],
                vec!["a", "b"],
            ),
            (
                "one is going on",
                1,
                vec![member("a", "old", "new", false), old("b")],
                vec![],
            ),
            (
                "one is done",
                1,
                vec![member("a", "new", "new", true), old("b")],
                vec!["b"],
            ),
            (
                "one is down: it is taken first",
                1,
                vec![old("a"), member("b", "old", "old", false)],
                vec!["b"],
            ),
            (
                "one is down beside",
                2,
                vec![old("a"), old("b"), member("c", "old", "old", false)],
                vec!["c", "a"],
            ),
            (
                "a new one is down",
                1,
                vec![member("a", "new", "", false), old("b")],
                vec![],
            ),
            (
                "one has it, and is not back yet",
                1,
                vec![member("a", "new", "new", false), old("b")],
                vec![],
            ),
            (
                "one has it, and takes no pods yet",
                1,
                vec![at_work(member("a", "new", "new", true)), old("b")],
                vec![],
            ),
            (
                "one was to have something else, and is called back",
                1,
                vec![member("a", "new", "other", true), old("b")],
                vec!["a"],
            ),
        ] {
            assert_eq!(plan(&pool(most), &members).start, begin, "{name}");
        }
    }

    #[test]
    fn upgrade_completes_when_all_nodes_are_done() {
        for (members, expected) in [
            (vec![], true),
            (vec![member("a", "new", "new", true)], true),
            (
                vec![
                    member("a", "new", "", true),
                    member("b", "old", "new", true),
                ],
                false,
            ),
            (vec![member("", "new", "", false)], false),
            (vec![at_work(member("a", "new", "new", true))], false),
        ] {
            assert_eq!(plan(&pool(1), &members).is_done(), expected, "{members:?}");
        }
    }

    #[test]
    fn machine_set_annotations_report_progress() {
        let mut stuck = member("b", "old", "new", true);
        stuck.failure = Some("node b: no space".to_owned());
        let done = member("a", "new", "new", true);
        let annotations = |members: &[Member]| plan(&pool(1), members).annotations(&pool(1));
        let in_progress = annotations(&[done.clone(), member("b", "old", "new", true)]);
        assert_eq!(
            in_progress[IN_PROGRESS].as_deref(),
            Some("1 of 2 nodes have new")
        );
        let failed = annotations(&[done.clone(), stuck]);
        assert_eq!(
            (failed[IN_PROGRESS].as_deref(), failed[FAILED].as_deref()),
            (None, Some("node b: no space"))
        );
        let finished = annotations(&[done]);
        assert_eq!(
            finished[CURRENT_CONFIG_VERSION.key()].as_deref(),
            Some("new")
        );
        assert_eq!(finished[IN_PROGRESS], None);
    }

    /// Cluster API may have updated the bootstrap Secret of the Machine already.
    #[test]
    fn nodes_without_annotations_have_the_pools_config() {
        let machine = |secret: &str| Machine {
            name: "m".to_owned(),
            data_secret: Some(secret.to_owned()),
            ..Machine::default()
        };
        let never = Pool {
            current: None,
            ..pool(1)
        };
        for (pool, secret, expected) in [
            (pool(1), "user-data-workers-old", "old"),
            (pool(1), "user-data-workers-new", "old"),
            (never, "user-data-workers-new", "new"),
        ] {
            let member = Member::new(&pool, &machine(secret), Some(&Node::default()));
            assert_eq!(member.current.as_deref(), Some(expected), "{secret}");
        }
    }
}
