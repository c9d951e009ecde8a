//! Diagnosis of hosted clusters: everything that an administrator would check.

mod machines;

use std::fmt::Write as _;

use api::group::{self, CapiTypes};
use serde_json::Value;

use super::{
    COMPONENTS, CONTROL_PLANES, DEPLOYMENTS, Fixture, HOSTED_CLUSTERS, NODE_POOLS, OPERATORS, PODS,
};
use crate::client::Resource;
use crate::node::NodeTestbed;
use crate::virtual_machines::{DATA_VOLUMES, INSTANCES, MACHINES};

const EVENTS: Resource<'_> = Resource::new("v1", "events");
/// How much of each log is shown.
const LINES: &str = "--tail=25";
const MOST_EVENTS: usize = 40;
/// Whose logs are shown of a control plane.
const TALKERS: [&str; 9] = [
    "control-plane-operator",
    "hosted-cluster-config-operator",
    "kube-apiserver",
    "capi-provider",
    "cluster-api",
    "cluster-autoscaler",
    "ignition-server",
    "karpenter",
    "karpenter-operator",
];

/// Shows it.
pub(super) async fn show(fixture: &Fixture) {
    let testbed = &fixture.testbed;
    let mut text = String::from("what there is:\n");
    for of in [
        HOSTED_CLUSTERS,
        NODE_POOLS,
        CONTROL_PLANES,
        COMPONENTS,
        DEPLOYMENTS,
    ] {
        text.push_str(&all_conditions(testbed, &of).await);
    }
    for capi_types in [CapiTypes::Private, CapiTypes::Standard] {
        let (core, provider) = (group::core(capi_types), group::infrastructure(capi_types));
        for (group, version, plural) in [
            (&core, "v1beta2", "machines"),
            (&core, "v1beta2", "machinehealthchecks"),
            (&provider, "v1beta2", "awsmachines"),
            (&provider, "v1alpha1", "kubevirtmachines"),
        ] {
            let version = format!("{group}/{version}");
            text.push_str(&all_conditions(testbed, &Resource::new(&version, plural)).await);
        }
    }
    for of in [MACHINES, INSTANCES, DATA_VOLUMES] {
        text.push_str(&all_conditions(testbed, &of).await);
    }
    for pod in list(testbed, &PODS.all()).await {
        text.push_str(&containers(&pod));
    }
    text.push_str(&warnings(&list(testbed, &EVENTS.all()).await));
    for name in ["operator", "operator-legacy"] {
        text.push_str(&log(testbed, OPERATORS, name).await);
    }
    for control_plane in list(testbed, &CONTROL_PLANES.all()).await {
        let metadata = &control_plane["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        text.push_str(&machines::of_control_plane(testbed, namespace).await);
        let name = metadata["name"].as_str().unwrap_or_default();
        // As the cluster has written it.
        let kubeconfig = testbed.path().join(format!("{name}.kubeconfig"));
        text.push_str(&machines::of_guest(&kubeconfig).await);
        for name in TALKERS {
            text.push_str(&log(testbed, namespace, name).await);
        }
    }
    text.push_str(&fixture.cloud.said());
    testbed.progress.note(&text);
}

async fn all_conditions(testbed: &NodeTestbed, of: &Resource<'_>) -> String {
    let objects = list(testbed, &of.all()).await;
    objects.iter().map(|one| conditions(of, one)).collect()
}

async fn log(testbed: &NodeTestbed, namespace: &str, name: &str) -> String {
    let what = format!("deployment/{name}");
    let args = ["-n", namespace, "logs", &what, "--all-containers", LINES];
    match testbed.kubectl_says(args).await {
        Ok(said) => format!("--- {namespace}/{what}\n{said}\n"),
        Err(error) => format!("--- {namespace}/{what}: no log: {error:#}\n"),
    }
}

async fn list(testbed: &NodeTestbed, path: &str) -> Vec<Value> {
    // What is not there yet has nothing to say.
    testbed.admin.list(path).await.unwrap_or_default()
}

fn conditions(of: &Resource<'_>, object: &Value) -> String {
    let mut text = String::new();
    for one in crate::conditions::all(object) {
        // Most are about what is well; these say so when they are false.
        let bad_when_true = ["Degraded", "Progressing", "Paused", "Deleting"];
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
    let (status, metadata) = (&pod["status"], &pod["metadata"]);
    for list in ["initContainerStatuses", "containerStatuses"] {
        for one in status[list].as_array().into_iter().flatten() {
            let ended_well = one["state"]["terminated"]["exitCode"] == 0;
            if one["ready"] != true && !ended_well {
                writeln!(
                    text,
                    "pod {}/{}: {} {} (before: {})",
                    metadata["namespace"],
                    metadata["name"],
                    one["name"],
                    one["state"],
                    one["lastState"]
                )
                .unwrap_or_default();
            }
        }
    }
    if status["phase"] == "Pending" && text.is_empty() {
        text = format!("pod {}: {}\n", metadata["name"], status["conditions"]);
    }
    text
}

fn warnings(events: &[Value]) -> String {
    let bad = events.iter().filter(|event| event["type"] == "Warning");
    let texts: Vec<String> = bad
        .map(|event| {
            let about = &event["involvedObject"];
            format!(
                "event {} {}/{}: {} {}\n",
                about["namespace"], about["kind"], about["name"], event["reason"], event["message"]
            )
        })
        .collect();
    texts[texts.len().saturating_sub(MOST_EVENTS)..].concat()
}
