//! The status of a pool, based on its machines. Pure.

use std::collections::BTreeMap;

use api::annotations::node_pool::{
    CURRENT_CONFIG, CURRENT_CONFIG_VERSION, PLATFORM_MACHINE_TEMPLATE, TARGET_CONFIG_VERSION,
};
use api::conditions::{PoolCondition, Status, status as status_of};
use api::hypershift::v1beta1::node_pool::{NodePoolStatus, NodeVersion, NodesInfo, UpgradeType};

use super::conditions::Conditions;
use super::facts::Facts;
use super::observed::{Machine, ObservedCondition, Workload};
use super::plan::Plan;
use super::validate::Evaluation;
use crate::names::node_pool as names;
use crate::platform::machines;

/// How many machines are named in a message.
const MAX_LISTED: usize = 5;

/// The conditions that machines and nodes decide.
pub(crate) fn observe(facts: &Facts, conditions: &mut Conditions) {
    if machines::template_kind(facts.capi(), facts.pool.spec.platform.type_).is_none() {
        return without_machines(conditions);
    }
    let desired = facts.workload.as_ref().and_then(|it| it.desired);
    let (ready, all_ready) = all(facts, |it| &it.ready, "ready");
    let (healthy, all_healthy) = all(facts, |it| &it.healthy, "healthy");
    for (about, is_so, message) in [
        (PoolCondition::AllMachinesReady, ready, all_ready),
        (PoolCondition::AllNodesHealthy, healthy, all_healthy),
    ] {
        match (facts.machines.is_empty(), desired) {
            (true, Some(0)) => conditions.good(about, "the NodePool is scaled to zero"),
            (true, _) => conditions.set(
                about,
                Status::False,
                "NotFound",
                "Waiting for the first Machine",
            ),
            (false, _) if is_so => conditions.good(about, message),
            (false, _) => conditions.set(about, Status::False, "WaitingForAvailable", message),
        }
    }
    ready_nodes(facts, desired, conditions);
    repair(facts, conditions);
}

/// Machines of this platform are created by another controller.
fn without_machines(conditions: &mut Conditions) {
    conditions.clear(PoolCondition::AllMachinesReady);
    conditions.clear(PoolCondition::AllNodesHealthy);
    let message = "Machines of this platform are created by another controller";
    conditions.good(PoolCondition::Ready, message);
}

/// Whether it is so for all machines, and a message that names those for which it is not.
fn all(facts: &Facts, of: fn(&Machine) -> &ObservedCondition, what: &str) -> (bool, String) {
    let (count, not): (usize, Vec<_>) = (
        facts.machines.len(),
        facts.machines.iter().filter(|it| !of(it).is_so).collect(),
    );
    if not.is_empty() {
        return (true, format!("{count} of {count} are {what}"));
    }
    let named = not.iter().take(MAX_LISTED).map(|machine| {
        let ObservedCondition {
            is_so: _,
            reason,
            message,
        } = of(machine);
        let why = [reason.as_str(), message.trim()]
            .into_iter()
            .filter(|it| !it.is_empty());
        format!("{} ({})", machine.name, why.collect::<Vec<_>>().join(": "))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    let more = not.len().saturating_sub(MAX_LISTED);
    let more = if more == 0 {
        String::new()
    } else {
        format!("; and {more} more")
    };
    (
        false,
        format!("{} of {count} are not {what}: {named}{more}", not.len()),
    )
}

fn ready_nodes(facts: &Facts, desired: Option<i32>, conditions: &mut Conditions) {
    let about = PoolCondition::Ready;
    let Some(workload) = &facts.workload else {
        conditions.set(
            about,
            Status::False,
            "WaitingForAvailable",
            "Waiting for the first Machine",
        );
        return;
    };
    let desired = desired.unwrap_or_default();
    let message = format!("{} of {desired} nodes are ready", workload.available);
    if workload.available >= desired {
        conditions.good(about, message);
        return;
    }
    conditions.set(about, Status::False, "WaitingForAvailable", message);
}

fn repair(facts: &Facts, conditions: &mut Conditions) {
    let about = PoolCondition::AutorepairEnabled;
    if !facts.pool.spec.management.auto_repair {
        conditions.off(about, "spec.management.autoRepair is off");
        return;
    }
    let reached = status_of(conditions.list(), PoolCondition::ReachedIgnitionEndpoint);
    if reached != Status::True && facts.remediation.is_none() {
        let message = "Waiting for the first ready Node of this configuration";
        conditions.set(about, Status::False, "IgnitionNotReached", message);
        return;
    }
    match &facts.remediation {
        Some(ObservedCondition {
            is_so: false,
            reason,
            message,
        }) if reason.contains("TooMany") => {
            conditions.set(about, Status::False, "TooManyUnhealthy", message.as_str());
        }
        Some(_) | None => conditions.good(about, "unhealthy machines are replaced"),
    }
}

/// Whether the machines are as planned.
pub(crate) fn is_rolled_out(facts: &Facts, plan: &Plan) -> bool {
    let Some(machines) = &plan.machines else {
        // The controller that creates the machines needs only the user data.
        return true;
    };
    let Some(workload) = &facts.workload else {
        return false;
    };
    match facts.upgrade_type() {
        UpgradeType::Replace => {
            let user_data = names::user_data(facts.name(), &plan.hash);
            let template = &machines.template.1.name;
            let is_planned = |it: &Workload| it.user_data == user_data && it.template == *template;
            let own = |it: &&Workload| it.owner.as_deref() == Some(facts.name());
            // A MachineDeployment may have observed a change and still count the old machines.
            let older = facts.machine_sets.iter().filter(own).find(|it| {
                !is_planned(it) && (it.desired.unwrap_or_default(), it.replicas) != (0, 0)
            });
            is_planned(workload) && workload.is_rolled_out() && older.is_none()
        }
        UpgradeType::InPlace => {
            let has = |key: &str| workload.annotations.get(key) == Some(&plan.hash);
            has(CURRENT_CONFIG_VERSION.key()) && has(TARGET_CONFIG_VERSION.key())
        }
    }
}

/// Annotations of the pool about its nodes; unchanged during a rollout.
pub(crate) fn bookkeeping(
    facts: &Facts,
    found: &Evaluation,
    plan: &Plan,
    is_done: bool,
) -> BTreeMap<&'static str, String> {
    let mut desired = BTreeMap::new();
    if let Some(hashes) = &found.hashes {
        desired.insert(CURRENT_CONFIG.key(), hashes.without_version.clone());
        desired.insert(CURRENT_CONFIG_VERSION.key(), hashes.with_version.clone());
    }
    if let Some(machines) = &plan.machines {
        desired.insert(
            PLATFORM_MACHINE_TEMPLATE.key(),
            machines.template.1.name.clone(),
        );
    }
    desired.retain(|key, value| match facts.annotation(key) {
        Some(current) => is_done && current != value,
        None => true,
    });
    desired
}

/// The pool's status.
pub(crate) fn status(
    facts: &Facts,
    found: &Evaluation,
    conditions: &Conditions,
    is_done: bool,
) -> NodePoolStatus {
    let before = facts.pool.status.clone().unwrap_or_default();
    let version = before.version.filter(|it| !it.is_empty());
    let desired = found.release.as_ref().map(|it| it.version.to_string());
    let is_new = version.is_none() && facts.workload.is_some();
    let version = if is_done || is_new {
        desired.or(version)
    } else {
        version
    };
    NodePoolStatus {
        replicas: Some(
            facts
                .workload
                .as_ref()
                .map_or(0, |it: &Workload| it.available),
        ),
        nodes_info: nodes_info(facts, version.as_deref()),
        version,
        platform: before.platform,
        conditions: conditions.list().to_vec(),
    }
}

/// What runs on the nodes. Machines that are upgraded in place report no release before their first upgrade.
fn nodes_info(facts: &Facts, version: Option<&str>) -> Option<NodesInfo> {
    let mut versions: BTreeMap<(&str, &str), (i32, i32)> = BTreeMap::new();
    for machine in facts.machines.iter().filter(|it| it.node.is_some()) {
        let (Some(release), Some(kubelet)) = (machine.release().or(version), &machine.kubelet)
        else {
            continue;
        };
        let (ready, unready) = versions.entry((release, kubelet)).or_default();
        *(if machine.healthy.is_so {
            ready
        } else {
            unready
        }) += 1;
    }
    let versions = versions
        .into_iter()
        .map(|((release, kubelet), (ready, unready))| NodeVersion {
            ocp_version: release.to_owned(),
            kubelet_version: kubelet.to_owned(),
            ready_node_count: ready,
            unready_node_count: unready,
        });
    let node_versions: Vec<_> = versions.collect();
    (!node_versions.is_empty()).then_some(NodesInfo { node_versions })
}

#[cfg(test)]
mod tests;
