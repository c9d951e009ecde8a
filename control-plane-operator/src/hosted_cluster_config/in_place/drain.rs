//! Drains and uncordons nodes for the machine-config-daemon.
//!
//! A pass waits for no pod: the next one evicts again what a `PodDisruptionBudget` protects, and checks which pods have
//! ended.

use std::time::Duration;

use api::group::DRAIN;
use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};
use tokio::time::sleep;

use super::super::context::Context;
use super::super::error::Error;
use super::MANAGER;

/// Node annotation with the daemon's request: `drain-HASH` or `uncordon-HASH`.
const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
/// Node annotation with the last completed request.
const LAST_APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
/// Annotation of static pods, which the kubelet would recreate.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Nodes that are drained at the same time, and pods of a node that are evicted at the same time.
const AT_ONCE: usize = 10;
/// Time for the evictions of a node in one pass: if a webhook does not answer, the other nodes must have their turn
/// before the deadline of the pass.
const ATTEMPT: Duration = Duration::from_secs(90);
/// How long the pods of an unreachable node are waited for after the end of their grace period. Only its kubelet could
/// confirm that they have ended.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);
/// Characters of an unknown verb that are reported.
const LONGEST_VERB: usize = 40;

/// A request of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DrainRequest {
    Drain(String),
    Uncordon(String),
}

/// Advances the request of each node by one step. A node that fails does not block the others.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let nodes = ctx.nodes().await?;
    let steps = stream::iter(nodes).map(|node| async move { advance(ctx, &node).await });
    let results: Vec<Result<(), Error>> = steps.buffer_unordered(AT_ONCE).collect().await;
    Error::all(failures(results))
}

async fn advance(ctx: &Context, node: &Node) -> Result<(), Error> {
    let api: Api<Node> = Api::all(ctx.guest.clone());
    match pending_request(node)? {
        None => Ok(()),
        Some(DrainRequest::Uncordon(requested)) => write(&api, node, &requested, false, true).await,
        Some(DrainRequest::Drain(requested)) => {
            let is_cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
            if !is_cordoned {
                write(&api, node, &requested, true, false).await?;
            }
            if evict_all(ctx, node).await? == 0 {
                write(&api, node, &requested, true, true).await?;
            }
            Ok(())
        }
    }
}

/// Returns the daemon's request, unless there is none or it is completed.
fn pending_request(node: &Node) -> Result<Option<DrainRequest>, Error> {
    let annotations = node.annotations();
    let requested = annotations.get(DESIRED_DRAIN).map_or("", String::as_str);
    let completed = annotations
        .get(LAST_APPLIED_DRAIN)
        .map_or("", String::as_str);
    if requested.is_empty() || requested == completed {
        return Ok(None);
    }
    let verb = requested
        .split_once('-')
        .map_or(requested, |(verb, _)| verb);
    match verb {
        "drain" => Ok(Some(DrainRequest::Drain(requested.to_owned()))),
        "uncordon" => Ok(Some(DrainRequest::Uncordon(requested.to_owned()))),
        _ => {
            // An annotation may be far longer than a line of the log.
            let verb: String = verb.chars().take(LONGEST_VERB).collect();
            Err(Error::Form {
                object: format!("annotation {DESIRED_DRAIN} of Node {}", node.name_any()),
                problem: format!("unknown verb {verb:?}: it must be drain or uncordon"),
            })
        }
    }
}

async fn write(
    api: &Api<Node>,
    node: &Node,
    requested: &str,
    is_cordoned: bool,
    is_done: bool,
) -> Result<(), Error> {
    let mut change: Value = json!({
        "metadata": { "resourceVersion": node.metadata.resource_version },
        "spec": { "unschedulable": is_cordoned },
    });
    if is_done {
        change["metadata"]["annotations"] = json!({ LAST_APPLIED_DRAIN: requested });
    }
    let name = node.name_any();
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&name, &params, &Patch::Merge(&change)).await {
        // The next watch event triggers another reconcile.
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done
            .map(drop)
            .map_err(Error::client(format!("cordon Node {name}"))),
    }
}

/// Evicts pods as far as `PodDisruptionBudgets` allow, and returns how many are waited for.
async fn evict_all(ctx: &Context, node: &Node) -> Result<usize, Error> {
    let name = node.name_any();
    let api: Api<Pod> = Api::all(ctx.guest.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={name}"));
    let list = api.list(&params).await;
    let list = list.map_err(Error::client(format!("list Pods of Node {name}")))?;
    let now = Timestamp::now();
    let mut left = list.items;
    left.retain(|pod| is_awaited(node, pod, now));
    let is_running = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let running: Vec<&Pod> = left.iter().filter(is_running).collect();
    let all = running.len();
    let evictions = stream::iter(running).map(|pod| evict(ctx, pod, &name));
    let results = evictions
        .buffer_unordered(AT_ONCE)
        .take_until(sleep(ATTEMPT));
    let results: Vec<Result<(), Error>> = results.collect().await;
    let late = all - results.len();
    let mut errors = failures(results);
    if late > 0 {
        errors.push(Error::waiting(format!(
            "{late} evictions of Pods of Node {name}, which did not end within {ATTEMPT:?}"
        )));
    }
    Error::all(errors)?;
    Ok(left.len())
}

async fn evict(ctx: &Context, pod: &Pod, node: &str) -> Result<(), Error> {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let api: Api<Pod> = Api::namespaced(ctx.guest.clone(), &namespace);
    match api.evict(&name, &EvictParams::default()).await {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Ok(()),
        // A PodDisruptionBudget blocks the eviction; it is retried.
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(()),
        Err(error) => {
            let what = format!("evict Pod {namespace}/{name} of Node {node}");
            Err(Error::client(what)(error))
        }
    }
}

/// Returns the errors in a fixed order: an error of a pass is logged again when its text has changed.
fn failures(results: Vec<Result<(), Error>>) -> Vec<Error> {
    let mut errors: Vec<Error> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Whether the drain is not over before this pod has ended.
fn is_awaited(node: &Node, pod: &Pod, now: Timestamp) -> bool {
    is_evictable(pod) && !(is_unreachable(node) && is_overdue(pod, now))
}

/// Whether the kubelet has stopped reporting. One that reports that it is not ready still ends its pods.
fn is_unreachable(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
}

/// Whether a pod should have ended long ago. The API server sets the time to the end of the pod's grace period.
fn is_overdue(pod: &Pod, now: Timestamp) -> bool {
    let end = pod.metadata.deletion_timestamp.as_ref();
    end.is_some_and(|end| now.duration_since(end.0) > PATIENCE)
}

fn is_evictable(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.as_ref();
    let of_node = owners.is_some_and(|owners| {
        owners
            .iter()
            .any(|it| it.kind == "DaemonSet" || it.kind == "Node")
    });
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    let is_daemon = pod
        .labels()
        .get("app")
        .is_some_and(|app| app == "machine-config-daemon");
    // As Cluster API does.
    let is_skipped = pod.labels().get(DRAIN).is_some_and(|value| value == "skip");
    let is_static = pod.annotations().contains_key(MIRROR);
    !of_node && !is_over && !is_daemon && !is_skipped && !is_static
}

#[cfg(test)]
mod tests;
