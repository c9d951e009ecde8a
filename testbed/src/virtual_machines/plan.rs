//! What KubeVirt and its importer do with the objects of virtual machines. Pure.

mod launchers;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::images::{Source, source};
use super::{DATA_VOLUMES, INSTANCES, MACHINES};
use crate::client::Resource;
use crate::conditions;

pub(super) use launchers::{Wanted, machines};

/// The kind that owns the others.
const MACHINE: &str = "VirtualMachine";
/// What a volume can be that is shared between nodes, so that its machine can migrate.
const SHARED: &str = "ReadWriteMany";
/// The phase of a volume that has its content.
const FILLED: &str = "Succeeded";
/// The phase of an instance, and of a pod, that runs.
const RUNNING: &str = "Running";

/// The objects of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) machines: Vec<Value>,
    pub(super) instances: Vec<Value>,
    pub(super) volumes: Vec<Value>,
    /// Where machines run in pods.
    pub(super) pods: Option<Pods>,
}

/// The pods of all namespaces.
#[derive(Debug)]
pub(super) struct Pods {
    pub(super) all: Vec<Value>,
    /// The image of those that machines run in.
    pub(super) image: String,
}

/// A request.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Creates an object in a collection.
    Create {
        /// The path of the collection.
        path: String,
        object: Value,
    },
    /// Changes fields of a status.
    WriteStatus {
        /// The path of the object.
        path: String,
        status: Value,
        /// The image that a volume has thereby been filled from.
        imported: Option<String>,
    },
    /// Deletes an object.
    Delete {
        /// The path of the object.
        path: String,
    },
}

/// What is to be requested. Nothing, if all objects are as they should be.
pub(super) fn steps(objects: &Objects) -> Vec<Step> {
    let living = objects.machines.iter().filter(|one| !is_ending(one));
    let mut steps: Vec<Step> = living
        .flat_map(|machine| of_machine(objects, machine))
        .collect();
    steps.extend(of_instances(objects));
    let volumes = objects.volumes.iter();
    steps.extend(volumes.filter_map(|volume| of_volume(objects, volume)));
    steps
}

/// Its volumes, then its instance, and what it reports of both.
fn of_machine(objects: &Objects, machine: &Value) -> Vec<Step> {
    let (namespace, name) = key(machine);
    let mut steps = Vec::new();
    let mut is_provisioned = true;
    for template in templates(machine) {
        let (_, volume) = key(template);
        if let Some(found) = find(&objects.volumes, namespace, volume) {
            is_provisioned &= is_filled(found);
        } else {
            is_provisioned = false;
            steps.push(create(
                DATA_VOLUMES,
                namespace,
                volume_of(machine, template),
            ));
        }
    }
    let instance = find(&objects.instances, namespace, name);
    match (runs(machine), instance) {
        (true, None) if is_provisioned => {
            steps.push(create(INSTANCES, namespace, instance_of(machine)));
        }
        (false, Some(instance)) if !is_ending(instance) => steps.push(delete(INSTANCES, instance)),
        _ => {}
    }
    let status = machine_status(runs(machine), is_provisioned, instance);
    steps.extend(write(MACHINES, machine, status));
    steps
}

/// Whether a machine is to run. One that is started by commands is not: there are none here.
fn runs(machine: &Value) -> bool {
    let spec = &machine["spec"];
    match spec["runStrategy"].as_str() {
        Some(strategy) => !matches!(strategy, "Halted" | "Manual"),
        None => spec["running"] == true,
    }
}

fn templates(machine: &Value) -> impl Iterator<Item = &Value> {
    let templates = machine["spec"]["dataVolumeTemplates"].as_array();
    templates.into_iter().flatten()
}

fn volume_of(machine: &Value, template: &Value) -> Value {
    let mut metadata = metadata(machine, &template["metadata"]);
    metadata["name"] = template["metadata"]["name"].clone();
    json!({
        "apiVersion": DATA_VOLUMES.api_version,
        "kind": "DataVolume",
        "metadata": metadata,
        "spec": template["spec"],
    })
}

fn instance_of(machine: &Value) -> Value {
    let template = &machine["spec"]["template"];
    let mut metadata = metadata(machine, &template["metadata"]);
    metadata["name"] = machine["metadata"]["name"].clone();
    json!({
        "apiVersion": INSTANCES.api_version,
        "kind": "VirtualMachineInstance",
        "metadata": metadata,
        "spec": template["spec"],
    })
}

/// The metadata of an object that a machine owns, less its name.
fn metadata(machine: &Value, template: &Value) -> Value {
    json!({
        "namespace": machine["metadata"]["namespace"],
        "labels": template["labels"],
        "annotations": template["annotations"],
        "ownerReferences": [{
            "apiVersion": MACHINES.api_version,
            "kind": MACHINE,
            "name": machine["metadata"]["name"],
            "uid": machine["metadata"]["uid"],
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    })
}

fn machine_status(runs: bool, is_provisioned: bool, instance: Option<&Value>) -> Value {
    let is_ready = instance.is_some_and(|one| !is_ending(one) && conditions::is_true(one, "Ready"));
    let printable = match (runs, instance.is_some()) {
        (false, false) => "Stopped",
        (false, true) => "Stopping",
        (true, _) if is_ready => "Running",
        (true, _) if is_provisioned => "Starting",
        (true, _) => "Provisioning",
    };
    json!({
        "printableStatus": printable,
        "created": instance.is_some(),
        "ready": is_ready,
        "conditions": [{ "type": "Ready", "status": if is_ready { "True" } else { "False" } }],
    })
}

/// They run until their machine is gone: in pods, or else at once, each with an address of its own.
fn of_instances(objects: &Objects) -> Vec<Step> {
    let mut used: BTreeSet<Ipv4Addr> = objects.instances.iter().filter_map(address).collect();
    let mut steps = Vec::new();
    for instance in objects.instances.iter().filter(|one| !is_ending(one)) {
        if is_orphan(objects, instance) {
            steps.push(delete(INSTANCES, instance));
            continue;
        }
        if let Some(pods) = &objects.pods {
            steps.extend(launchers::of_instance(objects, pods, instance));
            continue;
        }
        let Some(address) = address(instance).or_else(|| free(&used)) else {
            continue;
        };
        used.insert(address);
        let status = running(objects, instance, address);
        steps.extend(write(INSTANCES, instance, status));
    }
    steps.extend(launchers::obsolete(objects));
    steps
}

/// The status of an instance that runs.
fn running(objects: &Objects, instance: &Value, address: Ipv4Addr) -> Value {
    json!({
        "phase": RUNNING,
        "interfaces": [{ "name": "default", "ipAddress": address, "ipAddresses": [address] }],
        "conditions": [
            { "type": "Ready", "status": "True" },
            migratable(objects, instance),
        ],
    })
}

/// The address that an instance reports.
fn address(instance: &Value) -> Option<Ipv4Addr> {
    let reported = &instance["status"]["interfaces"][0]["ipAddress"];
    reported.as_str()?.parse().ok()
}

/// An address that no instance has: one of those for documentation, because no machine is behind it.
fn free(used: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
    let mut all = (1..=254).map(|host| Ipv4Addr::new(198, 51, 100, host));
    all.find(|address| !used.contains(address))
}

/// The condition by which it can be moved to another node: all its volumes are shared.
fn migratable(objects: &Objects, instance: &Value) -> Value {
    let (namespace, _) = key(instance);
    let volumes = instance["spec"]["volumes"].as_array();
    let mut names = volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["dataVolume"]["name"].as_str());
    let bound = names.find(|name| !find(&objects.volumes, namespace, name).is_some_and(is_shared));
    match bound {
        None => json!({ "type": "LiveMigratable", "status": "True" }),
        Some(name) => json!({
            "type": "LiveMigratable",
            "status": "False",
            "reason": "DisksNotLiveMigratable",
            "message": format!("volume {name} is not shared: its access modes lack {SHARED}"),
        }),
    }
}

fn is_shared(volume: &Value) -> bool {
    let spec = &volume["spec"];
    let modes = ["storage", "pvc"].map(|kind| spec[kind]["accessModes"].as_array());
    let mut modes = modes.into_iter().flatten().flatten();
    modes.any(|mode| mode == SHARED)
}

/// It is filled at once, a clone as soon as there is something to clone; it goes with the machine that owns it.
fn of_volume(objects: &Objects, volume: &Value) -> Option<Step> {
    if is_ending(volume) {
        return None;
    }
    if is_orphan(objects, volume) {
        return Some(delete(DATA_VOLUMES, volume));
    }
    if is_filled(volume) {
        return None;
    }
    let (phase, image) = match source(volume) {
        Some(Source::Image(url)) => (FILLED, Some(url)),
        Some(Source::Blank) => (FILLED, None),
        Some(Source::Clone { namespace, name }) => {
            let original = find(&objects.volumes, namespace, name);
            let phase = if original.is_some_and(is_filled) {
                FILLED
            } else {
                "Pending"
            };
            (phase, None)
        }
        None => ("Failed", None),
    };
    let is_ready = if phase == FILLED { "True" } else { "False" };
    let status = json!({
        "phase": phase,
        "conditions": [
            { "type": "Bound", "status": is_ready },
            { "type": "Ready", "status": is_ready },
            { "type": "Running", "status": "False" },
        ],
    });
    let mut step = write(DATA_VOLUMES, volume, status)?;
    if let Step::WriteStatus { imported, .. } = &mut step {
        *imported = image.map(str::to_owned);
    }
    Some(step)
}

fn is_filled(volume: &Value) -> bool {
    volume["status"]["phase"] == FILLED
}

/// Whether an object belongs to a machine that is gone, or about to be.
fn is_orphan(objects: &Objects, object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let Some(owner) = owners.find(|owner| owner["kind"] == MACHINE) else {
        return false;
    };
    let mut machines = objects.machines.iter();
    !machines.any(|one| one["metadata"]["uid"] == owner["uid"] && !is_ending(one))
}

fn is_ending(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Namespace and name; a template has no namespace.
fn key(object: &Value) -> (&str, &str) {
    let field = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    (field("namespace"), field("name"))
}

fn find<'a>(objects: &'a [Value], namespace: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|one| key(one) == (namespace, name))
}

fn create(resource: Resource<'_>, namespace: &str, object: Value) -> Step {
    let path = resource.within(namespace);
    Step::Create { path, object }
}

fn delete(resource: Resource<'_>, object: &Value) -> Step {
    let (namespace, name) = key(object);
    let path = resource.named(namespace, name);
    Step::Delete { path }
}

/// Writes fields of a status, if one of them differs.
fn write(resource: Resource<'_>, object: &Value, status: Value) -> Option<Step> {
    let mut fields = status.as_object().into_iter().flatten();
    if !fields.any(|(field, value)| object["status"][field] != *value) {
        return None;
    }
    let (namespace, name) = key(object);
    Some(Step::WriteStatus {
        path: resource.named(namespace, name),
        status,
        imported: None,
    })
}

#[cfg(test)]
mod tests;
