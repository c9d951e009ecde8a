//! Which nodes are upgraded next. Pure.

use std::collections::BTreeMap;

use api::annotations::node_pool::{CURRENT_CONFIG_VERSION, RELEASE_VERSION};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

use super::super::machines::Machine;
use super::{GOING_ON, STUCK};

/// What a node has; the daemon says so.
pub(super) const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
/// What a node is to have.
pub(super) const DESIRED: &str = "machineconfiguration.openshift.io/desiredConfig";
/// What the daemon does: `Done`, `Working`, `Degraded`. It is done once the node takes pods again.
const STATE: &str = "machineconfiguration.openshift.io/state";
/// What it cannot do.
const REASON: &str = "machineconfiguration.openshift.io/reason";

/// A pool with a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hosted_cluster_config) struct Pool {
    pub(super) name: String,
    pub(super) target: String,
    pub(super) current: Option<String>,
    /// Nodes that may be unavailable at a time.
    pub(super) most_at_once: usize,
}

/// A Machine of the pool, and its Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) machine: String,
    /// The release that the Machine says it runs.
    pub(super) release: Option<String>,
    node: Option<String>,
    current: Option<String>,
    desired: Option<String>,
    is_ready: bool,
    /// Whether no daemon is at work on it.
    is_settled: bool,
    /// What the daemon cannot do.
    trouble: Option<String>,
}

/// What comes next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Nodes to begin with.
    pub(super) begin: Vec<String>,
    /// Nodes that are being upgraded.
    pub(super) going_on: Vec<String>,
    done: usize,
    all: usize,
    trouble: Option<String>,
}

/// Decides. Nodes that are down count as unavailable, whatever the reason.
pub(super) fn plan(pool: &Pool, members: &[Member]) -> Plan {
    let mut plan = Plan {
        all: members.len(),
        trouble: members.iter().find_map(|member| member.trouble.clone()),
        ..Plan::default()
    };
    let mut waiting = Vec::new();
    let mut down = 0;
    for member in members {
        let Some(node) = &member.node else {
            // It will join with what it has been made for.
            continue;
        };
        if !member.has(pool) && member.desired.as_ref() == Some(&pool.target) {
            plan.going_on.push(node.clone());
            continue;
        }
        // One that has just been upgraded counts until it is back.
        down += usize::from(!member.is_ready);
        if member.has(pool) {
            plan.done += 1;
        } else {
            waiting.push((member.is_ready, node.clone()));
        }
    }
    let room = pool.most_at_once.saturating_sub(plan.going_on.len());
    // Nodes that are down first: nothing is lost by upgrading them.
    waiting.sort();
    let ready_room = room.saturating_sub(down);
    let mut begun_ready = 0;
    for (is_ready, node) in waiting {
        if plan.begin.len() == room || is_ready && begun_ready == ready_room {
            break;
        }
        begun_ready += usize::from(is_ready);
        plan.begin.push(node);
    }
    plan
}

// === impl Pool ===

impl Pool {
    /// Whether all nodes have the target.
    pub(super) fn is_upgraded(&self) -> bool {
        self.current.as_ref() == Some(&self.target)
    }

    /// The Secret with the payload.
    pub(super) fn token_name(&self) -> String {
        format!("token-{}-{}", self.name, self.target)
    }

    /// The namespace of what the upgrade needs in the hosted cluster.
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
        // A node that no daemon has been on has what its pool had. What its Machine names comes second: Cluster API
        // rewrites that on Machines that exist, as soon as the pool asks for something else.
        let begin = format!("user-data-{}-", pool.name);
        let data = machine.data_secret.as_deref();
        let made_with = data
            .and_then(|name| name.strip_prefix(&begin))
            .map(str::to_owned);
        let state = get(STATE);
        let is_degraded = state.as_deref() == Some("Degraded");
        let trouble = is_degraded.then(|| {
            let reason = get(REASON).unwrap_or_else(|| "it does not say why".to_owned());
            format!(
                "node {}: {reason}",
                node.map(kube::ResourceExt::name_any).unwrap_or_default()
            )
        });
        Self {
            machine: machine.name.clone(),
            release: machine.annotations.get(RELEASE_VERSION.key()).cloned(),
            node: node.map(kube::ResourceExt::name_any),
            current: get(CURRENT).or_else(|| pool.current.clone()).or(made_with),
            desired: get(DESIRED),
            is_ready: node.is_some_and(is_ready),
            is_settled: state.is_none_or(|state| state == "Done"),
            trouble,
        }
    }

    /// Whether it has what the pool wants, and no change of it is pending.
    fn has(&self, pool: &Pool) -> bool {
        let is_target = |it: &String| *it == pool.target;
        self.is_settled
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
    /// Whether there is work for a daemon.
    pub(super) fn is_under_way(&self) -> bool {
        !self.begin.is_empty() || !self.going_on.is_empty()
    }

    /// Whether every node has the target. A Machine without a Node is waited for.
    pub(super) fn is_done(&self) -> bool {
        self.done == self.all
    }

    /// What the MachineSet says of it.
    pub(super) fn annotations(&self, pool: &Pool) -> BTreeMap<&'static str, Option<String>> {
        let progress = format!("{} of {} nodes have {}", self.done, self.all, pool.target);
        let (going_on, stuck) = match &self.trouble {
            _ if self.is_done() => (None, None),
            Some(trouble) => (None, Some(trouble.clone())),
            None => (Some(progress), None),
        };
        let mut all = BTreeMap::from([(GOING_ON, going_on), (STUCK, stuck)]);
        if self.is_done() {
            all.insert(CURRENT_CONFIG_VERSION.key(), Some(pool.target.clone()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(most_at_once: usize) -> Pool {
        Pool {
            name: "workers".to_owned(),
            target: "new".to_owned(),
            current: Some("old".to_owned()),
            most_at_once,
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
            is_settled: true,
            ..Member::default()
        }
    }

    fn at_work(member: Member) -> Member {
        Member {
            is_settled: false,
            ..member
        }
    }

    #[test]
    fn no_more_nodes_are_down_than_may_be() {
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
            assert_eq!(plan(&pool(most), &members).begin, begin, "{name}");
        }
    }

    #[test]
    fn a_pool_is_done_when_all_of_it_is() {
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
    fn a_set_says_how_far_it_is() {
        let mut stuck = member("b", "old", "new", true);
        stuck.trouble = Some("node b: no space".to_owned());
        let done = member("a", "new", "new", true);
        let said = |members: &[Member]| plan(&pool(1), members).annotations(&pool(1));
        let going_on = said(&[done.clone(), member("b", "old", "new", true)]);
        assert_eq!(going_on[GOING_ON].as_deref(), Some("1 of 2 nodes have new"));
        let failed = said(&[done.clone(), stuck]);
        assert_eq!(
            (failed[GOING_ON].as_deref(), failed[STUCK].as_deref()),
            (None, Some("node b: no space"))
        );
        let finished = said(&[done]);
        assert_eq!(
            finished[CURRENT_CONFIG_VERSION.key()].as_deref(),
            Some("new")
        );
        assert_eq!(finished[GOING_ON], None);
    }

    /// Cluster API may have written the target's user data to the Machine already.
    #[test]
    fn a_node_without_a_daemon_has_what_its_pool_had() {
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
