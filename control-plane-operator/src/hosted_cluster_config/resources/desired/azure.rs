//! What only clusters on Azure have: the workload identity webhook and the cloud node manager.

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Object, manifest, service_account};
use super::webhooks::{client, configuration, pods};

const RBAC: &str = include_str!("assets/rbac-azure.yaml");
const NODE_MANAGER: &str = include_str!("assets/azure-cloud-node-manager.yaml");
const NAME: &str = "azure-cloud-node-manager";
const NAMESPACE: &str = "kube-system";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    desired.extend(manifest(RBAC).into_iter().map(Object::enforce));
    let webhook = json!({
        "name": "pod-identity-webhook.azure.mutate.io",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": client(input, "https://127.0.0.1:9443/mutate-v1-pod"),
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "IfNeeded",
        "objectSelector": { "matchLabels": { "azure.workload.identity/use": "true" } },
        "sideEffects": "None",
        "rules": pods(),
    });
    desired.add(configuration("azure-workload-identity-webhook", &webhook));
    let mut account = service_account(NAMESPACE, NAME);
    account["metadata"]["labels"] = json!({ "k8s-app": NAME });
    desired.add(Object::create(account));
    for document in manifest(NODE_MANAGER) {
        desired.attempt(daemon_set(input, document));
    }
}

fn daemon_set(input: &Input<'_>, mut value: Value) -> Result<Object, Error> {
    let image = input.image(&format!("DaemonSet {NAMESPACE}/{NAME}"), NAME)?;
    value["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    Ok(Object::enforce(value))
}
