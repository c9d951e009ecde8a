//! What is the matter with a hosted cluster: everything that somebody would look at who is called to it.

use std::fmt::Write as _;

use e2e::client::Resource;
use e2e::node::NodeTestbed;
use serde_json::Value;

use crate::ground::{CONTROL_PLANE, Ground, NAMESPACE};
use crate::stages::{COMPONENTS, DEPLOYMENTS, HOSTED_CLUSTERS, MACHINES, NODE_POOLS};

const PODS: Resource<'_> = Resource::new("v1", "pods");
const EVENTS: Resource<'_> = Resource::new("v1", "events");
const CONTROL_PLANES: Resource<'_> =
    Resource::new("hypershift.openshift.io/v1beta1", "hostedcontrolplanes");
const AWS_MACHINES: Resource<'_> = Resource::new(
    "infrastructure.cluster.hypershift.openshift.io/v1beta2",
    "awsmachines",
);
/// Where the operator is.
const OPERATOR: &str = "hypershift";
/// How much of each log is shown.
const LINES: &str = "--tail=25";
const MOST_EVENTS: usize = 25;

/// Shows it.
pub(crate) async fn show(testbed: &NodeTestbed, ground: &Ground) {
    let mut text = String::from("what there is:\n");
    for (of, namespace) in [
        (HOSTED_CLUSTERS, NAMESPACE),
        (NODE_POOLS, NAMESPACE),
        (CONTROL_PLANES, CONTROL_PLANE),
        (COMPONENTS, CONTROL_PLANE),
        (DEPLOYMENTS, CONTROL_PLANE),
        (MACHINES, CONTROL_PLANE),
        (AWS_MACHINES, CONTROL_PLANE),
    ] {
        for object in list(testbed, &of.within(namespace)).await {
            text.push_str(&conditions(&of, &object));
        }
    }
    for namespace in [OPERATOR, CONTROL_PLANE] {
        for pod in list(testbed, &PODS.within(namespace)).await {
            text.push_str(&containers(&pod));
        }
    }
    text.push_str(&warnings(
        &list(testbed, &EVENTS.within(CONTROL_PLANE)).await,
    ));
    for (namespace, what) in [
        (OPERATOR, "deployment/operator"),
        (CONTROL_PLANE, "deployment/control-plane-operator"),
        (CONTROL_PLANE, "deployment/kube-apiserver"),
        (CONTROL_PLANE, "deployment/capi-provider"),
        (CONTROL_PLANE, "deployment/cluster-api"),
        (CONTROL_PLANE, "deployment/ignition-server"),
    ] {
        let args = ["-n", namespace, "logs", what, "--all-containers", LINES];
        let said = testbed
            .kubectl_says(args)
            .await
            .unwrap_or_else(|error| format!("(no log: {error:#})"));
        write!(text, "--- {namespace}/{what}\n{said}\n").unwrap_or_default();
    }
    text.push_str(&ground.cloud.said());
    testbed.progress.note(&text);
}

async fn list(testbed: &NodeTestbed, path: &str) -> Vec<Value> {
    // What is not there yet has nothing to say.
    testbed.admin.list(path).await.unwrap_or_default()
}

fn conditions(of: &Resource<'_>, object: &Value) -> String {
    let mut text = String::new();
    let all = object["status"]["conditions"].as_array();
    for one in all.into_iter().flatten() {
        // Most are about what is well; these two say so when they are false.
        let bad_when_true = ["Degraded", "Progressing", "Paused"];
        let is_bad = bad_when_true.iter().any(|kind| one["type"] == *kind);
        if (one["status"] == "True") == is_bad {
            writeln!(
                text,
                "{} {}: {} is {} ({}): {}",
                of.plural,
                object["metadata"]["name"],
                one["type"],
                one["status"],
                one["reason"],
                one["message"]
            )
            .unwrap_or_default();
        }
    }
    text
}

fn containers(pod: &Value) -> String {
    let mut text = String::new();
    let status = &pod["status"];
    for list in ["initContainerStatuses", "containerStatuses"] {
        for one in status[list].as_array().into_iter().flatten() {
            let ended_well = one["state"]["terminated"]["exitCode"] == 0;
            if one["ready"] != true && !ended_well {
                writeln!(
                    text,
                    "pod {}: {} {} (before: {})",
                    pod["metadata"]["name"], one["name"], one["state"], one["lastState"]
                )
                .unwrap_or_default();
            }
        }
    }
    if status["phase"] == "Pending" && text.is_empty() {
        text = format!(
            "pod {}: {}\n",
            pod["metadata"]["name"], status["conditions"]
        );
    }
    text
}

fn warnings(events: &[Value]) -> String {
    let bad = events.iter().filter(|event| event["type"] == "Warning");
    let texts: Vec<String> = bad
        .map(|event| {
            format!(
                "event {}/{}: {} {}\n",
                event["involvedObject"]["kind"],
                event["involvedObject"]["name"],
                event["reason"],
                event["message"]
            )
        })
        .collect();
    texts[texts.len().saturating_sub(MOST_EVENTS)..].concat()
}
