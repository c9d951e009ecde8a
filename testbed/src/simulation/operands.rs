//! What operators in control planes create: see [`pod_tools::operands`]. Their pods do not run, so this creates it for them.

use std::collections::BTreeMap;

use anyhow::Result;
use futures::TryStreamExt as _;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use pod_tools::operands;
use serde_json::{Value, json};

use crate::client::ApiClient;
use crate::hosted::{CONTROL_PLANES, DEPLOYMENTS};

/// Creates what an operator creates, if the Deployment is that of an operator.
pub(super) async fn follow_operator(admin: &ApiClient, deployment: &Value) -> Result<()> {
    if !is_operator(deployment) {
        return Ok(());
    }
    let namespace = text(deployment, "namespace");
    for control_plane in admin.list(&CONTROL_PLANES.within(namespace)).await? {
        admin.apply(&created_by(deployment, &control_plane)).await?;
    }
    Ok(())
}

/// Creates what a changed control plane needs, until the watch ends: its operators themselves do not change with it.
pub(super) async fn follow_control_planes(admin: ApiClient) -> Result<()> {
    let kind = GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", "HostedControlPlane");
    let resource = ApiResource::from_gvk(&kind);
    let mut objects = super::changes(&admin, &resource).await?;
    let mut generations = BTreeMap::new();
    while let Some(object) = objects.try_next().await? {
        let generation = object.metadata.generation;
        let last = generations.insert(object.metadata.uid.clone(), generation);
        if last == Some(generation) {
            continue;
        }
        let control_plane = json!(object);
        let namespace = text(&control_plane, "namespace");
        for deployment in admin.list(&DEPLOYMENTS.within(namespace)).await? {
            if is_operator(&deployment) {
                let made = created_by(&deployment, &control_plane);
                admin.apply(&made).await?;
            }
        }
    }
    Ok(())
}

fn is_operator(deployment: &Value) -> bool {
    operands::has_operands(text(deployment, "name"))
}

/// What an operator creates for a control plane, with the images of its environment.
fn created_by(operator: &Value, control_plane: &Value) -> Vec<Value> {
    let name = text(operator, "name");
    let containers = operator.pointer("/spec/template/spec/containers");
    let mut containers = containers.and_then(Value::as_array).into_iter().flatten();
    let container = containers.find(|container| container["name"] == name);
    let variables = container.and_then(|container| container["env"].as_array());
    let environment = |name: &str| {
        let mut all = variables.into_iter().flatten();
        let found = all.find(|variable| variable["name"] == name)?;
        found["value"].as_str().map(str::to_owned)
    };
    operands::of(name, &environment, control_plane)
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_create_the_operands_of_the_platform() {
        let operator = json!({
            "metadata": { "namespace": "a", "name": "cluster-storage-operator" },
            "spec": { "template": { "spec": { "containers": [{
                "name": "cluster-storage-operator",
                "env": [
                    { "name": "AWS_EBS_DRIVER_OPERATOR_IMAGE", "value": "r.test/aws" },
                    { "name": "AZURE_DISK_DRIVER_OPERATOR_IMAGE", "value": "r.test/azure" },
                ],
            }] } } },
        });
        assert!(is_operator(&operator));
        for (platform, expected) in [("AWS", "r.test/aws"), ("Azure", "r.test/azure")] {
            let control_plane = json!({
                "metadata": { "namespace": "a", "name": "b" },
                "spec": { "platform": { "type": platform } },
            });
            let [operand] = &created_by(&operator, &control_plane)[..] else {
                panic!("one operand has an image on {platform}");
            };
            let image = "/spec/template/spec/containers/0/image";
            assert_eq!(operand.pointer(image), Some(&json!(expected)));
            assert_eq!(operand["metadata"]["namespace"], "a");
        }
    }
}
