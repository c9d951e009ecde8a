//! What a cluster waits for, from what its objects say: pure.

use api::conditions::{ClusterCondition, ComponentCondition, PoolCondition, Status, find, status};
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;

use crate::hosted::{Snapshot, nodes};
use crate::listed::Listed;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// It can be used.
    Done,
    /// What it waits for, the first cause first.
    Waits(Vec<String>),
}

/// How many components are listed, so that the line stays readable.
const SHOWN: usize = 3;

/// Conditions that block everything when they are false, until the user changes something.
const BLOCKING: [ClusterCondition; 4] = [
    ClusterCondition::ValidConfiguration,
    ClusterCondition::SupportedHostedCluster,
    ClusterCondition::ValidReleaseImage,
    ClusterCondition::PlatformCredentialsFound,
];

/// How far a cluster is.
pub(super) fn progress(snapshot: &Snapshot) -> Progress {
    let mut waits = blocked(snapshot);
    if waits.is_empty() {
        waits.extend(control_plane(snapshot));
    }
    if waits.is_empty() {
        waits.extend(snapshot.pools.unreadable.iter().map(ToString::to_string));
        waits.extend(snapshot.pools.items.iter().filter_map(pool));
    }
    if waits.is_empty() {
        return Progress::Done;
    }
    Progress::Waits(waits)
}

fn blocked(snapshot: &Snapshot) -> Vec<String> {
    let conditions = conditions(snapshot.cluster.as_ref());
    BLOCKING
        .iter()
        .filter_map(|about| find(conditions, about))
        .filter(|condition| condition.status == "False")
        .map(|condition| format!("{}: {}", condition.type_, condition.message))
        .collect()
}

fn conditions(
    cluster: Option<&HostedCluster>,
) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    cluster
        .and_then(|cluster| cluster.status.as_ref())
        .map_or(&[], |status| &status.conditions)
}

/// What the control plane waits for: its components, or what comes before there are any.
fn control_plane(snapshot: &Snapshot) -> Vec<String> {
    let conditions = conditions(snapshot.cluster.as_ref());
    let kubeconfig = snapshot
        .cluster
        .as_ref()
        .and_then(|cluster| cluster.status.as_ref()?.kubeconfig.as_ref());
    if status(conditions, ClusterCondition::Available) == Status::True && kubeconfig.is_some() {
        return Vec::new();
    }
    let components = components(snapshot);
    if !components.is_empty() {
        return components;
    }
    if snapshot.control_plane.is_none() {
        return vec!["the operator has not made its control plane yet".to_owned()];
    }
    let said = find(conditions, ClusterCondition::Available)
        .map(|condition| condition.message.clone())
        .filter(|message| !message.is_empty());
    vec![said.unwrap_or_else(|| "the control plane is not available yet".to_owned())]
}

/// Components that are not rolled out, those that others wait for first.
fn components(snapshot: &Snapshot) -> Vec<String> {
    let waiting = snapshot.components.items.iter().filter_map(|component| {
        let conditions = &component.status.as_ref()?.conditions;
        if status(conditions, ComponentCondition::RolloutComplete) == Status::True {
            return None;
        }
        let name = component.metadata.name.as_deref().unwrap_or_default();
        let condition = find(conditions, ComponentCondition::RolloutComplete);
        let (reason, message) = condition.map_or(("", ""), |condition| {
            (condition.reason.as_str(), condition.message.as_str())
        });
        Some((
            reason == "WaitingForDependencies",
            format!("{name}: {message}"),
        ))
    });
    let unreadable = snapshot.components.unreadable.iter();
    let unreadable = unreadable.map(|component| (false, component.to_string()));
    let mut waiting: Vec<_> = waiting.chain(unreadable).collect();
    waiting.sort();
    let of_itself = waiting.iter().filter(|(depends, _)| !depends).count();
    let causes = if of_itself > 0 {
        of_itself
    } else {
        waiting.len()
    };
    let shown = causes.min(SHOWN);
    let more = waiting.len() - shown;
    let rest = if causes > shown {
        "are not rolled out"
    } else {
        "wait for them"
    };
    let lines = waiting.into_iter().take(shown).map(|(_, line)| line);
    let mut lines: Vec<String> = lines.collect();
    if more > 0 {
        lines.push(format!("{more} more components {rest}"));
    }
    lines
}

fn pool(pool: &NodePool) -> Option<String> {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let wanted = pool.spec.replicas.unwrap_or_default();
    let there = nodes(pool);
    if there >= wanted {
        return None;
    }
    let conditions = pool
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let why = find(conditions, PoolCondition::Ready)
        .and_then(|condition| condition.message.clone())
        .filter(|message| !message.is_empty())
        .map(|message| format!(": {message}"));
    Some(format!(
        "node pool {name} has {there} of {wanted} nodes{}",
        why.unwrap_or_default()
    ))
}

/// What is still there of a cluster that is being deleted.
pub(super) fn left(cluster: &HostedCluster, pools: &Listed<NodePool>) -> String {
    let items = pools.items.iter();
    let names = items.filter_map(|pool| pool.metadata.name.as_deref());
    let unreadable = pools.unreadable.iter().map(|pool| pool.name.as_str());
    let names: Vec<_> = names.chain(unreadable).collect();
    if !names.is_empty() {
        return format!("node pools {}", names.join(", "));
    }
    let said = find(
        conditions(Some(cluster)),
        ClusterCondition::HostedClusterDestroyed,
    )
    .map(|condition| condition.message.clone())
    .filter(|message| !message.is_empty());
    said.unwrap_or_else(|| {
        let finalizers = cluster.metadata.finalizers.iter().flatten();
        let held: Vec<_> = finalizers.map(String::as_str).collect();
        format!("held by {}", held.join(", "))
    })
}

#[cfg(test)]
mod tests;
