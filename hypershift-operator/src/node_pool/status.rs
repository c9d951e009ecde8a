//! The status of a pool, based on its machines. Pure.

mod addresses;
mod summary;

use std::collections::BTreeMap;

use api::annotations::node_pool::{
    CURRENT_CONFIG, CURRENT_CONFIG_VERSION, KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS,
    PLATFORM_MACHINE_TEMPLATE, TARGET_CONFIG_VERSION,
};
use api::conditions::{PoolCondition, Status, status as status_of};
use api::hypershift::v1beta1::node_pool::{NodePoolStatus, NodeVersion, NodesInfo, UpgradeType};
use api::hypershift::v1beta1::platform::PlatformType;

use super::conditions::Conditions;
use super::facts::Facts;
use super::observed::{ObservedCondition, Workload};
use super::os_stream;
use super::plan::Plan;
use super::validate::Evaluation;
use crate::names::node_pool as names;
use crate::platform::{kubevirt, machines};
use summary::{Summary, summary};

/// The conditions that machines and nodes decide.
pub(crate) fn observe(facts: &Facts, conditions: &mut Conditions) {
    if machines::template_kind(facts.capi(), facts.pool.spec.platform.type_).is_none() {
        return without_machines(conditions);
    }
    let desired = facts.workload.as_ref().and_then(|it| it.desired);
    let ready = summary(&facts.machines, |it| &it.ready, "ready");
    let healthy = summary(&facts.machines, |it| &it.healthy, "healthy");
    let count = facts.machines.len();
    for (about, not, what) in [
        (PoolCondition::AllMachinesReady, ready, "ready"),
        (PoolCondition::AllNodesHealthy, healthy, "healthy"),
    ] {
        match (count, desired, not) {
            (0, Some(0), _) => conditions.good(about, "the NodePool is scaled to zero"),
            (0, _, _) => conditions.set(
                about,
                Status::False,
                "NotFound",
                "Waiting for the first Machine",
            ),
            (_, _, None) => {
                conditions.good(about, format!("{count} of {count} machines are {what}"));
            }
            (_, _, Some(Summary { reason, message })) => {
                conditions.set(about, Status::False, reason, message);
            }
        }
    }
    ready_nodes(facts, desired, conditions);
    repair(facts, conditions);
    let about = PoolCondition::ClusterNetworkCidrConflict;
    match addresses::conflict(facts) {
        Some(message) => conditions.set(about, Status::True, "InvalidConfiguration", message),
        None => conditions.clear(about),
    }
    live_migration(facts, conditions);
}

/// Machines of this platform are created by another controller.
fn without_machines(conditions: &mut Conditions) {
    conditions.clear(PoolCondition::AllMachinesReady);
    conditions.clear(PoolCondition::AllNodesHealthy);
    conditions.clear(PoolCondition::ClusterNetworkCidrConflict);
    let message = "Machines of this platform are created by another controller";
    conditions.good(PoolCondition::Ready, message);
}

/// What the virtual machines of the pool report takes precedence over what their disks let expect.
fn live_migration(facts: &Facts, conditions: &mut Conditions) {
    let reported = facts.machines.iter().filter_map(|machine| {
        let found = machine.live_migration.as_ref()?;
        Some((machine, found))
    });
    let reported: Vec<_> = reported.collect();
    if reported.is_empty() {
        return;
    }
    let about = PoolCondition::KubeVirtNodesLiveMigratable;
    let not: Vec<_> = reported.iter().filter(|(_, found)| !found.is_so).collect();
    let Some((_, first)) = not.first() else {
        conditions.good(about, "virtual machines can be live-migrated");
        return;
    };
    let lines = not
        .iter()
        .map(|(machine, found)| format!("Machine {}: {}", machine.name, found.message.trim()));
    let message = format!(
        "{} of {} virtual machines cannot be live-migrated\n{}",
        not.len(),
        reported.len(),
        lines.collect::<Vec<_>>().join("\n")
    );
    let reason = Some(first.reason.as_str()).filter(|it| !it.is_empty());
    let reason = reason.unwrap_or("NotLiveMigratable");
    let message = summary::shortened(message);
    conditions.set(about, Status::False, reason, message);
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
    // While no machine is replaced, a user has to repair them.
    if let Some(ObservedCondition {
        is_so: false,
        reason,
        message,
    }) = &facts.remediation
        && !reason.is_empty()
    {
        conditions.set(about, Status::False, reason.as_str(), message.as_str());
        return;
    }
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
        if is_spread(facts, found) {
            let key = KUBEVIRT_TOPOLOGY_SPREAD_CONSTRAINTS.key();
            desired.insert(key, "true".to_owned());
        }
    }
    desired.retain(|key, value| match facts.annotation(key) {
        Some(current) => is_done && current != value,
        None => true,
    });
    desired
}

/// Whether virtual machines are spread evenly over hosts. It is recorded, because it holds for what comes later, too.
fn is_spread(facts: &Facts, found: &Evaluation) -> bool {
    let release = found.release.as_ref();
    facts.pool.spec.platform.type_ == PlatformType::KubeVirt
        && release.is_some_and(|it| kubevirt::is_spread(&facts.pool, &it.version.to_string()))
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
        os_image_stream: os_stream::reported(facts),
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
