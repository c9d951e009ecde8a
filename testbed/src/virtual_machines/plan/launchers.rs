//! The pods that virtual machines run in, as KubeVirt makes them. Pure.
//!
//! A machine has the network of its pod, so that what concerns the pod concerns the machine: its address, and the
//! NetworkPolicies that select its labels. A machine that loses its pod has failed, and another one takes its place.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{
    INSTANCES, MACHINE, Objects, Pods, RUNNING, Step, create, delete, find, is_ending, is_orphan,
    key, migratable, running, write,
};
use crate::client::Resource;

const PODS: Resource<'_> = Resource::new("v1", "pods");
/// The kind that owns the pods.
const INSTANCE: &str = "VirtualMachineInstance";
/// The label that all of these pods have, and its value, with which their names begin.
const LABEL: &str = "kubevirt.io";
const LAUNCHER: &str = "virt-launcher";
/// What of an instance decides where its pod runs.
const PLACEMENT: [&str; 4] = [
    "affinity",
    "nodeSelector",
    "tolerations",
    "topologySpreadConstraints",
];
/// The kinds of volumes that have the user data of a machine.
const CLOUD_INIT: [&str; 2] = ["cloudInitConfigDrive", "cloudInitNoCloud"];

/// A machine that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Wanted {
    /// The namespace of its instance.
    pub(in super::super) namespace: String,
    /// The name of its instance, which is its host name.
    pub(in super::super) name: String,
    /// The UID of the machine that owns the instance: with it, its disk is the same.
    pub(in super::super) owner: String,
    /// The address of its pod.
    pub(in super::super) address: Ipv4Addr,
    /// The control group of its pod, in that of the testbed.
    pub(in super::super) group: String,
    /// The Secret with its user data.
    pub(in super::super) user_data: Option<String>,
}

/// The pod of an instance.
enum Launcher<'a> {
    /// There is none.
    Missing,
    /// The one of that name belongs to an earlier instance, and is about to go.
    Other,
    /// It has ended, or is about to.
    Ended,
    /// It does not run yet.
    Starting,
    /// It runs.
    Running(&'a Value, Ipv4Addr),
}

// === impl Launcher ===

impl<'a> Launcher<'a> {
    fn of(pods: &'a [Value], instance: &Value) -> Self {
        let (namespace, _) = key(instance);
        let Some(pod) = find(pods, namespace, &name_of(instance)) else {
            return Self::Missing;
        };
        let status = &pod["status"];
        let address = status["podIP"].as_str();
        let address: Option<Ipv4Addr> = address.and_then(|it| it.parse().ok());
        match address {
            _ if !owns(instance, pod) => Self::Other,
            _ if is_ending(pod) => Self::Ended,
            _ if status["phase"] == "Failed" || status["phase"] == "Succeeded" => Self::Ended,
            Some(address) if status["phase"] == RUNNING => Self::Running(pod, address),
            _ => Self::Starting,
        }
    }
}

/// Its pod, what the pod says of it, and its end if the pod has ended.
pub(super) fn of_instance(objects: &Objects, pods: &Pods, instance: &Value) -> Vec<Step> {
    let has_run = instance["status"]["phase"] == RUNNING;
    let (namespace, _) = key(instance);
    let waits = || write(INSTANCES, instance, waiting(objects, instance, has_run));
    match Launcher::of(&pods.all, instance) {
        Launcher::Running(_, address) => {
            let status = running(objects, instance, address);
            write(INSTANCES, instance, status).into_iter().collect()
        }
        Launcher::Starting | Launcher::Other => waits().into_iter().collect(),
        Launcher::Missing if !has_run => {
            let pod = create(PODS, namespace, pod_of(instance, &pods.image));
            [pod].into_iter().chain(waits()).collect()
        }
        Launcher::Missing | Launcher::Ended => vec![delete(INSTANCES, instance)],
    }
}

/// Deletes the pods whose instance is gone, or about to be.
pub(super) fn obsolete(objects: &Objects) -> Vec<Step> {
    let pods = objects.pods.iter().flat_map(|pods| &pods.all);
    let launchers = pods.filter(|pod| pod["metadata"]["labels"][LABEL] == LAUNCHER);
    let obsolete = launchers.filter(|pod| {
        let mut instances = objects.instances.iter();
        !is_ending(pod) && !instances.any(|one| owns(one, pod) && !is_ending(one))
    });
    obsolete.map(|pod| delete(PODS, pod)).collect()
}

/// The machines that are to run: those of all pods that run.
pub(in super::super) fn machines(objects: &Objects) -> Vec<Wanted> {
    let Some(pods) = &objects.pods else {
        return Vec::new();
    };
    let living = objects.instances.iter();
    let living = living.filter(|one| !is_ending(one) && !is_orphan(objects, one));
    let machines = living.filter_map(|instance| match Launcher::of(&pods.all, instance) {
        Launcher::Running(pod, address) => Some(wanted(instance, pod, address)),
        _ => None,
    });
    machines.collect()
}

fn wanted(instance: &Value, pod: &Value, address: Ipv4Addr) -> Wanted {
    let (namespace, name) = key(instance);
    let owners = instance["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let owner = owners.find(|owner| owner["kind"] == MACHINE);
    let owner = owner.and_then(|owner| owner["uid"].as_str());
    Wanted {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        owner: owner.unwrap_or_default().to_owned(),
        address,
        group: group(pod),
        user_data: user_data(instance),
    }
}

/// The control group of a pod: nodes, and in them pods by their class.
fn group(pod: &Value) -> String {
    let text = |at: &str| pod.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let class = match text("/status/qosClass") {
        "Guaranteed" => String::new(),
        other => format!("{}/", other.to_lowercase()),
    };
    let (node, uid) = (text("/spec/nodeName"), text("/metadata/uid"));
    format!("{node}/kubepods/{class}pod{uid}")
}

/// The Secret with the user data of an instance.
fn user_data(instance: &Value) -> Option<String> {
    let volumes = instance["spec"]["volumes"].as_array();
    let mut volumes = volumes.into_iter().flatten();
    let secret = volumes.find_map(|volume| {
        let mut kinds = CLOUD_INIT.iter();
        kinds.find_map(|kind| volume[*kind]["secretRef"]["name"].as_str())
    });
    secret.map(str::to_owned)
}

/// The status of an instance that is not ready.
fn waiting(objects: &Objects, instance: &Value, has_run: bool) -> Value {
    json!({
        "phase": if has_run { RUNNING } else { "Scheduling" },
        "conditions": [
            { "type": "Ready", "status": "False", "reason": "GuestNotRunning" },
            migratable(objects, instance),
        ],
    })
}

fn name_of(instance: &Value) -> String {
    format!("{LAUNCHER}-{}", key(instance).1)
}

fn owns(instance: &Value, pod: &Value) -> bool {
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    !owner.is_null() && *owner == instance["metadata"]["uid"]
}

/// A pod that only holds the network. It has the labels of the instance, by which NetworkPolicies select it.
fn pod_of(instance: &Value, image: &str) -> Value {
    let (namespace, name) = key(instance);
    let mut labels = instance["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[LABEL] = json!(LAUNCHER);
    let mut pod = json!({
        "apiVersion": PODS.api_version,
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name_of(instance),
            "labels": labels,
            "annotations": instance["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": INSTANCES.api_version,
                "kind": INSTANCE,
                "name": name,
                "uid": instance["metadata"]["uid"],
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "automountServiceAccountToken": false,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "compute",
                "image": image,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    });
    for field in PLACEMENT {
        if !instance["spec"][field].is_null() {
            pod["spec"][field] = instance["spec"][field].clone();
        }
    }
    pod
}

#[cfg(test)]
mod tests;
