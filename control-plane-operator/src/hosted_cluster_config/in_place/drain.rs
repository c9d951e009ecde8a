//! Drains and uncordons nodes for the machine-config-daemon.

use api::group::DRAIN;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::super::context::Context;
use super::super::error::Error;
use super::MANAGER;

/// Node annotation with the daemon's request: `drain-HASH` or `uncordon-HASH`.
const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
/// Node annotation with the last completed request.
const LAST_APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
/// Annotation of static pods, which the kubelet would recreate.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// A request of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DrainRequest {
    Drain(String),
    Uncordon(String),
}

/// Advances the request of each node by one step.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let api: Api<Node> = Api::all(ctx.guest.clone());
    for node in ctx.nodes().await? {
        match pending_request(&node) {
            None => {}
            Some(DrainRequest::Uncordon(requested)) => {
                write(&api, &node, &requested, false, true).await?
            }
            Some(DrainRequest::Drain(requested)) => {
                let is_cordoned =
                    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
                if !is_cordoned {
                    write(&api, &node, &requested, true, false).await?;
                }
                if evict(ctx, &node.name_any()).await? == 0 {
                    write(&api, &node, &requested, true, true).await?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the daemon's request, unless it is completed.
fn pending_request(node: &Node) -> Option<DrainRequest> {
    let requested = node.annotations().get(DESIRED_DRAIN)?;
    if node.annotations().get(LAST_APPLIED_DRAIN) == Some(requested) {
        return None;
    }
    match requested.split_once('-') {
        Some(("drain", _)) => Some(DrainRequest::Drain(requested.clone())),
        Some(("uncordon", _)) => Some(DrainRequest::Uncordon(requested.clone())),
        _ => None,
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

/// Evicts pods as far as `PodDisruptionBudgets` allow, and returns how many remain.
async fn evict(ctx: &Context, node: &str) -> Result<usize, Error> {
    let all: Api<Pod> = Api::all(ctx.guest.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = all.list(&params).await;
    let list = list.map_err(Error::client(format!("list Pods of Node {node}")))?;
    let left: Vec<_> = list.items.into_iter().filter(is_evictable).collect();
    for pod in left
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let api: Api<Pod> =
            Api::namespaced(ctx.guest.clone(), &pod.namespace().unwrap_or_default());
        match api.evict(&pod.name_any(), &EvictParams::default()).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            // A PodDisruptionBudget blocks the eviction; it is retried.
            Err(kube::Error::Api(status)) if status.code == 429 => {}
            Err(error) => {
                return Err(Error::client(format!("evict Pod {}", pod.name_any()))(
                    error,
                ));
            }
        }
    }
    Ok(left.len())
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
mod tests {
    use super::*;

    #[test]
    fn drain_requests_are_completed_once() {
        for (requested, done, expected) in [
            (
                "drain-a",
                "",
                Some(DrainRequest::Drain("drain-a".to_owned())),
            ),
            ("drain-a", "drain-a", None),
            (
                "uncordon-a",
                "drain-a",
                Some(DrainRequest::Uncordon("uncordon-a".to_owned())),
            ),
            ("uncordon-a", "uncordon-a", None),
            ("other", "", None),
        ] {
            let node = json!({ "metadata": { "annotations": { DESIRED_DRAIN: requested, LAST_APPLIED_DRAIN: done } } });
            assert_eq!(
                pending_request(&serde_json::from_value(node).unwrap()),
                expected,
                "{requested} {done}"
            );
        }
    }

    #[test]
    fn pods_that_a_drain_skips_are_not_evicted() {
        for (pod, expected) in [
            (json!({ "metadata": {} }), true),
            (
                json!({ "metadata": { "ownerReferences": [{ "kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "a", "uid": "u" }] } }),
                true,
            ),
            (
                json!({ "metadata": { "ownerReferences": [{ "kind": "DaemonSet", "apiVersion": "apps/v1", "name": "a", "uid": "u" }] } }),
                false,
            ),
            (
                json!({ "metadata": { "annotations": { MIRROR: "x" } } }),
                false,
            ),
            (
                json!({ "metadata": { "labels": { "app": "machine-config-daemon" } } }),
                false,
            ),
            (
                json!({ "metadata": {}, "status": { "phase": "Succeeded" } }),
                false,
            ),
            (
                json!({ "metadata": { "labels": { DRAIN: "skip" } } }),
                false,
            ),
            (json!({ "metadata": { "labels": { DRAIN: "" } } }), true),
        ] {
            assert_eq!(
                is_evictable(&serde_json::from_value(pod.clone()).unwrap()),
                expected,
                "{pod}"
            );
        }
    }
}
