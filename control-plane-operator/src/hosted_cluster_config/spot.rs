//! Replaces Machines of spot instances that the cloud is about to terminate.
//!
//! The node termination handler taints their Nodes; deleting the Machine drains the Node and creates a replacement.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, ResourceExt as _};
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;
use super::machines::{self, Machine};

/// Prefix of the node termination handler's taints.
const TAINT: &str = "aws-node-termination-handler/";
/// Label of Machines on spot instances.
const INTERRUPTIBLE: &str = "hypershift.openshift.io/interruptible-instance";

/// Deletes the Machines of Nodes with a termination taint.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let machines = ctx.machines().await?;
    let nodes = ctx.nodes().await?;
    for machine in nodes
        .iter()
        .filter_map(|node| interrupted_machine(node, &machines))
    {
        delete(ctx, machine).await?;
    }
    Ok(())
}

/// Returns the spot Machine of a Node with a termination taint, unless it is being deleted.
fn interrupted_machine<'a>(node: &Node, machines: &'a [Machine]) -> Option<&'a Machine> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    taints.iter().find(|taint| taint.key.starts_with(TAINT))?;
    let machine = machines::of_node(machines, node)?;
    let is_spot = machine.labels.contains_key(INTERRUPTIBLE);
    (is_spot && !machine.is_deleted).then_some(machine)
}

async fn delete(ctx: &Context, machine: &Machine) -> Result<(), Error> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(ctx.management.clone(), &ctx.namespace, &ctx.machine);
    let name = &machine.name;
    let what = || format!("delete Machine {name}");
    let found = api.get_opt(name).await.map_err(Error::client(what()))?;
    let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
        return Ok(());
    };
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
    use serde_json::json;

    use super::*;

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
                interrupted_machine(&node, std::slice::from_ref(&machine)).is_some(),
                expected,
                "{key} {machine:?}"
            );
        }
    }
}
