//! Replaces Machines of spot instances that the cloud is about to terminate.
//!
//! The node termination handler taints their Nodes; deleting the Machine drains the Node and creates a replacement.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;
use super::machines::{self, Machine};

/// Prefix of the node termination handler's taints.
const TAINT: &str = "aws-node-termination-handler/";
/// Label of Machines on spot instances.
const INTERRUPTIBLE: &str = "hypershift.openshift.io/interruptible-instance";

/// Annotation of Machines with the taint that announced their end.
const SIGNAL: &str = "hypershift.openshift.io/spot-interruption-signal";
const MANAGER: &str = "hosted-cluster-config-operator";

/// Deletes the Machines of Nodes with a termination taint.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let machines = ctx.machines().await?;
    let nodes = ctx.nodes().await?;
    for (machine, taint) in nodes
        .iter()
        .filter_map(|node| interrupted_machine(node, &machines))
    {
        delete(ctx, machine, taint).await?;
    }
    Ok(())
}

/// Returns the spot Machine of a Node with a termination taint and the taint, unless it is being deleted.
fn interrupted_machine<'a>(
    node: &'a Node,
    machines: &'a [Machine],
) -> Option<(&'a Machine, &'a str)> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let taint = taints.iter().find(|taint| taint.key.starts_with(TAINT))?;
    let machine = machines::of_node(machines, node)?;
    let is_spot = machine.labels.contains_key(INTERRUPTIBLE);
    (is_spot && !machine.is_deleted).then_some((machine, &taint.key))
}

async fn delete(ctx: &Context, machine: &Machine, taint: &str) -> Result<(), Error> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.management.clone(), &ctx.namespace, &ctx.machine);
    let name = &machine.name;
    let what = || format!("delete Machine {name}");
    let found = api.get_opt(name).await.map_err(Error::client(what()))?;
    let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
        return Ok(());
    };
    // The replacement does not need it, but users look for the cause.
    let annotation = json!({ "metadata": {
        "uid": found.uid(),
        "annotations": { SIGNAL: taint },
    } });
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(name, &params, &Patch::Merge(&annotation)).await {
        Err(error) if is_missing(&error) || is_conflict(&error) => return Ok(()),
        patched => drop(patched.map_err(Error::client(format!("annotate Machine {name}")))?),
    }
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: found.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        Ok(_) => {
            tracing::info!(
                machine = name,
                "Deleted Machine of interrupted spot instance"
            );
            Ok(())
        }
        Err(error) if is_missing(&error) || is_conflict(&error) => Ok(()),
        Err(error) => Err(Error::client(what())(error)),
    }
}

#[cfg(test)]
mod tests {
    use support::testing::{Answer, Expect, Scenario};

    use super::super::context::testing::{Cached, context, control_plane, refused};
    use super::*;

    const MACHINE: &str =
        "/apis/cluster.hypershift.openshift.io/v1beta2/namespaces/clusters-a/machines/m";

    fn machine() -> serde_json::Value {
        json!({
            "apiVersion": "cluster.hypershift.openshift.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": "m", "namespace": "clusters-a", "uid": "u",
                "labels": { INTERRUPTIBLE: "" },
            },
            "status": { "nodeRef": { "name": "n" } },
        })
    }

    /// Runs a pass with an interrupted Node and its Machine.
    async fn interrupted(calls: Vec<Expect>) -> Result<(), Error> {
        let taint =
            json!({ "key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule" });
        let node = json!({ "metadata": { "name": "n" }, "spec": { "taints": [taint] } });
        let scenario = Scenario::new(calls);
        let cached = Cached {
            machines: vec![machine()],
            nodes: vec![node],
            ..Cached::of(control_plane(&json!({})))
        };
        let result = pass(&context(&scenario, cached).await).await;
        scenario.finish();
        result
    }

    fn annotation() -> Expect {
        let annotations = json!({ SIGNAL: "aws-node-termination-handler/spot-itn" });
        Expect::patch(MACHINE)
            .body(json!({ "metadata": { "uid": "u", "annotations": annotations } }))
            .answer(Answer::ok(&machine()))
    }

    #[tokio::test]
    async fn interrupted_machine_is_annotated_and_then_deleted() {
        let calls = vec![
            Expect::get(MACHINE).answer(Answer::ok(&machine())),
            annotation(),
            Expect::delete(MACHINE).body(json!({ "preconditions": { "uid": "u" } })),
        ];
        interrupted(calls).await.unwrap();
    }

    #[tokio::test]
    async fn machines_that_are_gone_meanwhile_are_left_alone() {
        let gone = || Answer::error(404, "NotFound");
        let mut deleted = machine();
        deleted["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        let found = || Expect::get(MACHINE).answer(Answer::ok(&machine()));
        for calls in [
            vec![Expect::get(MACHINE).answer(gone())],
            vec![Expect::get(MACHINE).answer(Answer::ok(&deleted))],
            // Another Machine of the same name.
            vec![found(), annotation().answer(Answer::error(409, "Conflict"))],
            vec![found(), annotation().answer(gone())],
            vec![
                found(),
                annotation(),
                Expect::delete(MACHINE).answer(gone()),
            ],
        ] {
            interrupted(calls).await.unwrap();
        }
    }

    #[tokio::test]
    async fn failures_are_returned_so_that_they_are_retried() {
        let found = || Expect::get(MACHINE).answer(Answer::ok(&machine()));
        for (calls, expected) in [
            (vec![Expect::get(MACHINE).answer(refused())], "delete"),
            (vec![found(), annotation().answer(refused())], "annotate"),
            (
                vec![
                    found(),
                    annotation(),
                    Expect::delete(MACHINE).answer(refused()),
                ],
                "delete",
            ),
        ] {
            let error = interrupted(calls).await.unwrap_err().to_string();
            assert_eq!(error, format!("failed to {expected} Machine m"));
        }
    }

    #[test]
    fn only_spot_machines_of_tainted_nodes_are_deleted() {
        let machine = |is_spot: bool, is_deleted: bool| Machine {
            name: "m".to_owned(),
            node: Some("n".to_owned()),
            labels: is_spot
                .then(|| (INTERRUPTIBLE.to_owned(), String::new()))
                .into_iter()
                .collect(),
            is_deleted,
            ..Machine::default()
        };
        let taint = "aws-node-termination-handler/spot-itn";
        for (key, machine, expected) in [
            (taint, machine(true, false), true),
            (taint, machine(false, false), false),
            (taint, machine(true, true), false),
            ("other", machine(true, false), false),
        ] {
            let node = json!({ "metadata": { "name": "n" }, "spec": { "taints": [{ "key": key, "effect": "NoSchedule" }] } });
            let node: Node = serde_json::from_value(node).unwrap();
            assert_eq!(
                interrupted_machine(&node, std::slice::from_ref(&machine)).map(|(_, taint)| taint),
                expected.then_some(key),
                "{key} {machine:?}"
            );
        }
    }
}
