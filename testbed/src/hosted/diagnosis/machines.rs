//! Diagnosis of machines and nodes: what machines are made of, what their payload waits for, and what the hosted cluster
//! says about its nodes and pods.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use api::group::{self, CapiTypes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{EVENTS, containers, list, warnings};
use crate::client::{ApiClient, Resource};
use crate::conditions;
use crate::hosted::{PODS, SECRETS};
use crate::node::NodeTestbed;

/// How long the API of a hosted cluster may take. It may be what has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Prefixes of annotations that say which configuration an object has, or is to have.
const CONFIGURATION: [&str; 3] = [
    "cluster.x-k8s.io/cluster-api-autoscaler",
    "hypershift.openshift.io/",
    "machineconfiguration.openshift.io/",
];
/// What Karpenter makes in a hosted cluster, and of what.
const OF_KARPENTER: [Resource<'_>; 4] = [
    Resource::new(
        "karpenter.hypershift.openshift.io/v1",
        "openshiftec2nodeclasses",
    ),
    Resource::new("karpenter.k8s.aws/v1", "ec2nodeclasses"),
    Resource::new("karpenter.sh/v1", "nodepools"),
    Resource::new("karpenter.sh/v1", "nodeclaims"),
];

/// What there is in the namespace of a control plane.
pub(super) async fn of_control_plane(testbed: &NodeTestbed, namespace: &str) -> String {
    let mut text = String::new();
    for capi_types in [CapiTypes::Private, CapiTypes::Standard] {
        let version = format!("{}/v1beta2", group::core(capi_types));
        for plural in ["machinedeployments", "machinesets", "machines"] {
            let of = Resource::new(&version, plural);
            for object in list(testbed, &of.within(namespace)).await {
                text.push_str(&made_of(plural, &object));
            }
        }
    }
    for secret in list(testbed, &SECRETS.within(namespace)).await {
        text.push_str(&token(&secret));
    }
    text
}

/// What a hosted cluster says. Without its kubeconfig, it was never reached.
pub(super) async fn of_guest(kubeconfig: &Path) -> String {
    if !kubeconfig.is_file() {
        return String::new();
    }
    let path = kubeconfig.display();
    match tokio::time::timeout(PATIENCE, guest(kubeconfig)).await {
        Ok(Ok(text)) => format!("--- {path}\n{text}"),
        Ok(Err(error)) => format!("--- {path}: no response: {error:#}\n"),
        Err(_) => format!("--- {path}: no response within {PATIENCE:?}\n"),
    }
}

async fn guest(kubeconfig: &Path) -> Result<String> {
    let client = ApiClient::from_kubeconfig(kubeconfig).await?;
    let nodes = client.list("/api/v1/nodes").await?;
    let mut text: String = nodes.iter().map(node).collect();
    for kind in OF_KARPENTER {
        // Most clusters do not serve them.
        let objects = client.list(&kind.all()).await.unwrap_or_default();
        text.extend(objects.iter().map(|one| untrue(&kind, one)));
    }
    for pod in client.list(&PODS.all()).await? {
        text.push_str(&containers(&pod));
    }
    text.push_str(&warnings(&client.list(&EVENTS.all()).await?));
    Ok(text)
}

/// A line about what an object lacks.
fn untrue(kind: &Resource<'_>, object: &Value) -> String {
    let name = &object["metadata"]["name"];
    format!("{} {name}: {}\n", kind.plural, conditions::untrue(object))
}

/// A line about machines, or about what makes them.
fn made_of(plural: &str, object: &Value) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    // A machine has in its spec what the others have in a template.
    let made = match &spec["template"] {
        Value::Null => spec,
        template => &template["spec"],
    };
    format!(
        "{plural} {}: phase {}, {} of {} available, node {}, user data {}, template {}, {}\n",
        object["metadata"]["name"],
        status["phase"],
        status["availableReplicas"],
        spec["replicas"],
        status["nodeRef"]["name"],
        made["bootstrap"]["dataSecretName"],
        made["infrastructureRef"]["name"],
        configuration(object)
    )
}

/// A line about the payload of a configuration, without the token.
fn token(secret: &Value) -> String {
    let data = &secret["data"];
    if data["release-version"].is_null() {
        return String::new();
    }
    let value = |key: &str| {
        let encoded = data[key].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(encoded).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    format!(
        "secret {}: release {}, has a payload: {}, {:?}: {}\n",
        secret["metadata"]["name"],
        value("release-version"),
        !data["payload"].is_null(),
        value("reason"),
        value("message")
    )
}

fn node(node: &Value) -> String {
    let ready = crate::conditions::find(node, "Ready").unwrap_or(&Value::Null);
    format!(
        "node {}: Ready {} ({}), unschedulable {}, taints {}, allocatable {}, {}\n",
        node["metadata"]["name"],
        ready["status"],
        ready["message"],
        node["spec"]["unschedulable"],
        node["spec"]["taints"],
        node["status"]["allocatable"],
        configuration(node)
    )
}

/// The annotations about the configuration.
fn configuration(object: &Value) -> String {
    let annotations = object["metadata"]["annotations"].as_object();
    let all = annotations.into_iter().flat_map(Map::iter);
    let own = all.filter(|(key, _)| CONFIGURATION.iter().any(|prefix| key.starts_with(prefix)));
    let texts: Vec<_> = own.map(|(key, value)| format!("{key}={value}")).collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_not_shown() {
        let encoded = |text: &str| STANDARD.encode(text);
        let secret = json!({
            "metadata": { "name": "token-workers-1a" },
            "data": {
                "token": encoded("hunter2"),
                "release-version": encoded("4.22.0"),
                "reason": encoded("InvalidConfig"),
                "message": encoded("no such field"),
            },
        });
        let expected = "secret \"token-workers-1a\": release 4.22.0, has a payload: false, \
                        \"InvalidConfig\": no such field\n";
        assert_eq!(token(&secret), expected);
        assert_eq!(
            token(&json!({ "metadata": { "name": "a" }, "data": {} })),
            ""
        );
    }

    #[test]
    fn machines_and_their_sets_say_what_they_are_made_of() {
        let made =
            json!({ "bootstrap": { "dataSecretName": "u" }, "infrastructureRef": { "name": "t" } });
        let mut set = json!({
            "metadata": {
                "name": "s",
                "annotations": { "hypershift.openshift.io/nodePoolTargetConfigVersion": "1", "other": "2" },
            },
            "spec": { "replicas": 2, "template": { "spec": made } },
            "status": { "availableReplicas": 1 },
        });
        let line = made_of("machinesets", &set);
        assert!(line.contains("1 of 2 available"), "{line}");
        assert!(
            line.contains("user data \"u\", template \"t\", hypershift.openshift.io/"),
            "{line}"
        );
        assert!(!line.contains("other"), "{line}");
        set["spec"] = made;
        let line = made_of("machines", &set);
        assert!(line.contains("user data \"u\", template \"t\""), "{line}");
    }
}
