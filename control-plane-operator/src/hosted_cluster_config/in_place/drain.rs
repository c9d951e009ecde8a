//! Empties nodes for the daemon that works on them, and gives them back.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{EvictParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::super::context::Context;
use super::super::error::Error;
use super::MANAGER;

/// What the daemon asks for: `drain-HASH` or `uncordon-HASH`.
const ASKED: &str = "machineconfiguration.openshift.io/desiredDrain";
/// What was done of it.
const DONE: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
/// Pods of the node itself, which come back wherever they are evicted from.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What the daemon asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    Drained(String),
    Back(String),
}

/// One step for each node whose daemon asks for something.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let api: Api<Node> = Api::all(ctx.guest.clone());
    for node in ctx.nodes().await? {
        match wish(&node) {
            None => {}
            Some(Wish::Back(asked)) => write(&api, &node, &asked, false, true).await?,
            Some(Wish::Drained(asked)) => {
                let is_cordoned =
                    node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
                if !is_cordoned {
                    write(&api, &node, &asked, true, false).await?;
                }
                if evict(ctx, &node.name_any()).await? == 0 {
                    write(&api, &node, &asked, true, true).await?;
                }
            }
        }
    }
    Ok(())
}

/// What a daemon asks for, unless it is done.
fn wish(node: &Node) -> Option<Wish> {
    let asked = node.annotations().get(ASKED)?;
    if node.annotations().get(DONE) == Some(asked) {
        return None;
    }
    match asked.split_once('-') {
        Some(("drain", _)) => Some(Wish::Drained(asked.clone())),
        Some(("uncordon", _)) => Some(Wish::Back(asked.clone())),
        _ => None,
    }
}

async fn write(
    api: &Api<Node>,
    node: &Node,
    asked: &str,
    is_cordoned: bool,
    is_done: bool,
) -> Result<(), Error> {
    let mut change: Value = json!({
        "metadata": { "resourceVersion": node.metadata.resource_version },
        "spec": { "unschedulable": is_cordoned },
    });
    if is_done {
        change["metadata"]["annotations"] = json!({ DONE: asked });
    }
    let name = node.name_any();
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&name, &params, &Patch::Merge(&change)).await {
        // Its next change comes through the cache.
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        done => done
            .map(drop)
            .map_err(Error::client(format!("cordon Node {name}"))),
    }
}

/// Asks pods to go, as far as budgets allow, and says how many are left.
async fn evict(ctx: &Context, node: &str) -> Result<usize, Error> {
    let all: Api<Pod> = Api::all(ctx.guest.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = all.list(&params).await;
    let list = list.map_err(Error::client(format!("list pods of Node {node}")))?;
    let left: Vec<_> = list.items.into_iter().filter(has_to_go).collect();
    for pod in left
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let api: Api<Pod> =
            Api::namespaced(ctx.guest.clone(), &pod.namespace().unwrap_or_default());
        match api.evict(&pod.name_any(), &EvictParams::default()).await {
            Ok(_) => {}
            Err(error) if is_missing(&error) => {}
            // A budget: it is asked again.
            Err(kube::Error::Api(status)) if status.code == 429 => {}
            Err(error) => {
                return Err(Error::client(format!("evict pod {}", pod.name_any()))(
                    error,
                ));
            }
        }
    }
    Ok(left.len())
}

fn has_to_go(pod: &Pod) -> bool {
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
    !of_node && !is_over && !is_daemon && !pod.annotations().contains_key(MIRROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_granted_once() {
        for (asked, done, expected) in [
            ("drain-a", "", Some(Wish::Drained("drain-a".to_owned()))),
            ("drain-a", "drain-a", None),
            (
                "uncordon-a",
                "drain-a",
                Some(Wish::Back("uncordon-a".to_owned())),
            ),
            ("uncordon-a", "uncordon-a", None),
            ("other", "", None),
        ] {
            let node = json!({ "metadata": { "annotations": { ASKED: asked, DONE: done } } });
            assert_eq!(
                wish(&serde_json::from_value(node).unwrap()),
                expected,
                "{asked} {done}"
            );
        }
    }

    #[test]
    fn pods_of_the_node_stay() {
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
        ] {
            assert_eq!(
                has_to_go(&serde_json::from_value(pod.clone()).unwrap()),
                expected,
                "{pod}"
            );
        }
    }
}
