//! In-place upgrades of a pool's nodes, a few at a time.
//!
//! ```text
//! MachineSet: target != current        Node: desiredConfig = target ──> machine-config-daemon
//!   token Secret: payload ──> ConfigMap      desiredDrain ──> drain ──> lastAppliedDrain
//!   current = target  <── all nodes have it  currentConfig = target, state Done
//! ```
//!
//! The machine-config-daemon on the node applies the payload. If its image is not set, it must be started by other
//! means; the other steps are the same.

mod daemon;
mod drain;
mod plan;

use std::collections::BTreeMap;
use std::time::Duration;

use api::annotations::node_pool::{
    CURRENT_CONFIG_VERSION, MAX_UNAVAILABLE, NODE_POOL, RELEASE_VERSION, TARGET_CONFIG_VERSION,
};
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;
use super::machines::Machine;
use plan::{Member, Pool};

/// Field manager.
const MANAGER: &str = "hosted-cluster-config-operator";
/// Polling interval for objects that are not watched: payloads, and evicted pods.
pub(super) const PERIOD: Duration = Duration::from_secs(5);
/// MachineSet annotation: progress of the upgrade.
const IN_PROGRESS: &str = "hypershift.openshift.io/nodePoolUpgradeInProgressTrue";
/// MachineSet annotation: failure of the upgrade.
const FAILED: &str = "hypershift.openshift.io/nodePoolUpgradeInProgressFalse";

/// Advances each upgrade by one step. Without an upgrade, only caches are read.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let sets = ctx.machine_sets().await?;
    let pools = sets.iter().filter_map(|set| Some((set, pool(set)?)));
    let behind: Vec<_> = pools.filter(|(_, pool)| !pool.is_upgraded()).collect();
    let machines = if behind.is_empty() {
        Vec::new()
    } else {
        ctx.machines().await?
    };
    // A failing pool blocks neither the others nor the drains.
    let mut errors = Vec::new();
    for (set, pool) in behind {
        let done = upgrade(ctx, set, &pool, &machines).await;
        errors.extend(done.err());
    }
    errors.extend(drain::pass(ctx).await.err());
    Error::all(errors)
}

/// Reads a pool with in-place upgrades. Other pools have no target annotation.
fn pool(set: &DynamicObject) -> Option<Pool> {
    let annotations = set.annotations();
    let target = annotations.get(TARGET_CONFIG_VERSION.key())?;
    let reference = annotations.get(NODE_POOL.key())?;
    let most = MAX_UNAVAILABLE.get(annotations).ok().flatten();
    Some(Pool {
        name: reference.rsplit('/').next()?.to_owned(),
        target: target.clone(),
        current: annotations.get(CURRENT_CONFIG_VERSION.key()).cloned(),
        max_unavailable: usize::try_from(most.unwrap_or(1)).unwrap_or(1).max(1),
    })
}

async fn upgrade(
    ctx: &Context,
    set: &DynamicObject,
    pool: &Pool,
    machines: &[Machine],
) -> Result<(), Error> {
    let sets = ctx.machine_set_api();
    let nodes = ctx.nodes().await?;
    let members = members(set, pool, machines, &nodes);
    let plan = plan::plan(pool, &members);
    if plan.is_done() {
        finish(ctx, pool, &members).await?;
        // Before the status is updated, because upgraded pools are skipped.
        daemon::remove(ctx, pool).await?;
        return annotate(&sets, set, &plan.annotations(pool)).await;
    }
    if plan.is_in_progress() {
        let payload = payload(ctx, pool).await?;
        daemon::prepare(ctx, pool, payload, &plan).await?;
    }
    let api: Api<Node> = Api::all(ctx.guest.clone());
    for node in &plan.start {
        let change = json!({ "metadata": { "annotations": { plan::DESIRED: pool.target } } });
        patch(&api, node, &change).await?;
        tracing::info!(
            node,
            pool = pool.name,
            target = pool.target,
            "Starting in-place upgrade"
        );
    }
    annotate(&sets, set, &plan.annotations(pool)).await
}

/// Returns the members of a MachineSet.
fn members(
    set: &DynamicObject,
    pool: &Pool,
    machines: &[Machine],
    nodes: &[std::sync::Arc<Node>],
) -> Vec<Member> {
    let of_set = machines
        .iter()
        .filter(|machine| machine.owner == set.uid() && !machine.is_deleted);
    of_set
        .map(|machine| {
            let node = nodes
                .iter()
                .find(|node| Some(node.name_any()) == machine.node);
            Member::new(pool, machine, node.map(AsRef::as_ref))
        })
        .collect()
}

async fn payload(ctx: &Context, pool: &Pool) -> Result<Vec<u8>, Error> {
    let name = pool.token_name();
    let secrets: Api<Secret> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let found = secrets.get_opt(&name).await;
    let found = found.map_err(Error::client(format!("get Secret {name}")))?;
    let payload = found.and_then(|secret| secret.data?.remove("payload"));
    let payload = payload.ok_or_else(|| Error::waiting(format!("key payload of Secret {name}")))?;
    Ok(payload.0)
}

/// Annotates the Machines with the release that they run.
async fn finish(ctx: &Context, pool: &Pool, members: &[Member]) -> Result<(), Error> {
    let name = pool.token_name();
    let secrets: Api<Secret> = Api::namespaced(ctx.management.clone(), &ctx.namespace);
    let found = secrets.get_opt(&name).await;
    let found = found.map_err(Error::client(format!("get Secret {name}")))?;
    let Some(version) = found.and_then(|secret| secret.data?.remove("release-version")) else {
        return Ok(());
    };
    let version = String::from_utf8_lossy(&version.0).into_owned();
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.management.clone(), &ctx.namespace, &ctx.machine);
    let outdated = members
        .iter()
        .filter(|it| it.release.as_ref() != Some(&version));
    for member in outdated {
        let change = json!({ "metadata": { "annotations": { RELEASE_VERSION.key(): version } } });
        patch(&api, &member.machine, &change).await?;
    }
    tracing::info!(
        pool = pool.name,
        target = pool.target,
        "Completed in-place upgrade"
    );
    Ok(())
}

/// Updates annotations of a MachineSet; `None` removes one.
async fn annotate(
    sets: &Api<DynamicObject>,
    set: &DynamicObject,
    desired: &BTreeMap<&str, Option<String>>,
) -> Result<(), Error> {
    let known = set.annotations();
    let differs = desired
        .iter()
        .any(|(key, value)| known.get(*key) != value.as_ref());
    if !differs {
        return Ok(());
    }
    let change = json!({ "metadata": {
        "resourceVersion": set.metadata.resource_version,
        "annotations": desired,
    } });
    patch(sets, &set.name_any(), &change).await
}

/// Conflicts are ignored, because the next reconcile decides again.
async fn patch<K>(api: &Api<K>, name: &str, change: &Value) -> Result<(), Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api
        .patch_metadata(name, &params, &Patch::Merge(change))
        .await
    {
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done
            .map(drop)
            .map_err(Error::client(format!("patch {name}"))),
    }
}
