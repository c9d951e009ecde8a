//! Objects of virtual machines as an API server would have them, and what is requested for them.

use super::*;

const NAMESPACE: &str = "vms";

/// A machine with one volume from an image.
fn machine(name: &str, uid: &str) -> Value {
    json!({
        "metadata": { "namespace": NAMESPACE, "name": name, "uid": uid },
        "spec": {
            "runStrategy": "Always",
            "dataVolumeTemplates": [{
                "metadata": { "name": format!("{name}-rhcos") },
                "spec": {
                    "source": { "registry": { "url": "docker://rhcos" } },
                    "storage": { "accessModes": ["ReadWriteMany"] },
                },
            }],
            "template": {
                "metadata": { "labels": { "kubevirt.io/vm": name } },
                "spec": { "volumes": [{ "dataVolume": { "name": format!("{name}-rhcos") } }] },
            },
        },
    })
}

/// Carries steps out; gives the images that were imported.
fn carry_out(objects: &mut Objects, steps: Vec<Step>) -> Vec<String> {
    let mut images = Vec::new();
    for step in steps {
        match step {
            Step::Create { path, object } => of(objects, &path).push(object),
            Step::WriteStatus {
                path,
                status,
                imported,
            } => {
                let all = of(objects, &path);
                let found = all.iter_mut().find(|one| path.ends_with(&name(one)));
                let found = found.expect("a status is of an object");
                for (field, value) in status.as_object().unwrap() {
                    found["status"][field] = value.clone();
                }
                images.extend(imported);
            }
            Step::Delete { path } => of(objects, &path).retain(|one| !path.ends_with(&name(one))),
        }
    }
    images
}

fn of<'a>(objects: &'a mut Objects, path: &str) -> &'a mut Vec<Value> {
    let has = |resource: Resource<'_>| path.contains(&resource.within(NAMESPACE));
    if has(MACHINES) {
        &mut objects.machines
    } else if has(INSTANCES) {
        &mut objects.instances
    } else {
        &mut objects.volumes
    }
}

fn name(object: &Value) -> String {
    format!("/{}", key(object).1)
}

/// Carries out all steps until there are none; gives the images that were imported.
fn settle(objects: &mut Objects) -> Vec<String> {
    let mut images = Vec::new();
    for _ in 0..10 {
        let steps = steps(objects);
        if steps.is_empty() {
            return images;
        }
        images.extend(carry_out(objects, steps));
    }
    panic!("it does not come to rest: {:?}", steps(objects));
}

fn settled(machines: Vec<Value>) -> Objects {
    let mut objects = Objects {
        machines,
        ..Objects::default()
    };
    settle(&mut objects);
    objects
}

#[test]
fn machines_start_in_order_volume_instance_ready() {
    let mut objects = Objects {
        machines: vec![machine("a", "1")],
        ..Objects::default()
    };
    let mut phases = Vec::new();
    loop {
        let steps = steps(&objects);
        if steps.is_empty() {
            break;
        }
        carry_out(&mut objects, steps);
        let phase = &objects.machines[0]["status"]["printableStatus"];
        if phases.last() != Some(phase) {
            phases.push(phase.clone());
        }
    }
    assert_eq!(phases, ["Provisioning", "Starting", "Running"]);
    let status = &objects.machines[0]["status"];
    assert_eq!(
        (&status["created"], &status["ready"]),
        (&json!(true), &json!(true))
    );
    let instance = &objects.instances[0];
    assert_eq!(instance["metadata"]["labels"]["kubevirt.io/vm"], "a");
    assert_eq!(instance["metadata"]["ownerReferences"][0]["uid"], "1");
    let status = &instance["status"];
    assert_eq!(status["phase"], "Running");
    assert_eq!(status["interfaces"][0]["ipAddress"], "198.51.100.1");
    assert_eq!(
        status["interfaces"][0]["ipAddresses"],
        json!(["198.51.100.1"])
    );
    assert!(conditions::is_true(instance, "Ready"));
}

#[test]
fn every_machine_imports_its_image_and_has_its_own_address() {
    let mut objects = Objects {
        machines: vec![machine("a", "1"), machine("b", "2")],
        ..Objects::default()
    };
    assert_eq!(settle(&mut objects), ["docker://rhcos", "docker://rhcos"]);
    let addresses: BTreeSet<_> = objects.instances.iter().filter_map(address).collect();
    assert_eq!(addresses.len(), 2);
}

#[test]
fn machines_run_as_their_strategy_says() {
    for (spec, expected) in [
        (json!({ "runStrategy": "Always" }), true),
        (json!({ "runStrategy": "RerunOnFailure" }), true),
        (json!({ "runStrategy": "Halted" }), false),
        (json!({ "runStrategy": "Manual" }), false),
        (json!({ "running": true }), true),
        (json!({ "running": false }), false),
        (json!({}), false),
    ] {
        let mut machine = machine("a", "1");
        let fields = machine["spec"].as_object_mut().unwrap();
        fields.remove("runStrategy");
        fields.extend(spec.as_object().unwrap().clone());
        let objects = settled(vec![machine]);
        assert_eq!(objects.instances.len(), usize::from(expected), "{spec}");
        let state = if expected { "Running" } else { "Stopped" };
        assert_eq!(objects.machines[0]["status"]["printableStatus"], state);
    }
}

#[test]
fn a_machine_that_is_halted_loses_its_instance() {
    let mut objects = settled(vec![machine("a", "1")]);
    objects.machines[0]["spec"]["runStrategy"] = json!("Halted");
    settle(&mut objects);
    assert!(objects.instances.is_empty());
    assert_eq!(objects.machines[0]["status"]["printableStatus"], "Stopped");
    assert_eq!(objects.volumes.len(), 1, "its disk stays");
}

#[test]
fn a_deleted_instance_is_started_again_with_its_disk() {
    let mut objects = settled(vec![machine("a", "1")]);
    objects.instances.clear();
    assert!(settle(&mut objects).is_empty(), "nothing is imported again");
    assert_eq!(objects.instances.len(), 1);
    assert_eq!(objects.machines[0]["status"]["ready"], true);
}

#[test]
fn what_a_machine_owns_goes_with_it() {
    let cache = json!({
        "metadata": { "namespace": NAMESPACE, "name": "cache" },
        "spec": { "source": { "blank": {} } },
    });
    for is_replaced in [false, true] {
        let mut objects = settled(vec![machine("a", "1"), machine("b", "2")]);
        objects.volumes.push(cache.clone());
        objects.machines.remove(0);
        if is_replaced {
            // Of the same name, and another machine: the old instance is not its own.
            objects.machines.push(machine("a", "3"));
        }
        settle(&mut objects);
        let owners = |all: &[Value]| -> BTreeSet<String> {
            let uids = all.iter().filter_map(|one| {
                let owner = &one["metadata"]["ownerReferences"][0]["uid"];
                owner.as_str().map(str::to_owned)
            });
            uids.collect()
        };
        let expected: BTreeSet<String> = if is_replaced {
            ["2", "3"].map(str::to_owned).into()
        } else {
            ["2"].map(str::to_owned).into()
        };
        assert_eq!(owners(&objects.instances), expected);
        assert_eq!(owners(&objects.volumes), expected);
        let kept = objects.volumes.iter().filter(|one| key(one).1 == "cache");
        assert_eq!(kept.count(), 1);
    }
}

#[test]
fn objects_that_are_being_deleted_are_left_alone() {
    let mut objects = settled(vec![machine("a", "1")]);
    let ending = json!("2026-01-01T00:00:00Z");
    objects.instances[0]["metadata"]["deletionTimestamp"] = ending.clone();
    let expected = json!({
        "printableStatus": "Starting",
        "created": true,
        "ready": false,
        "conditions": [{ "type": "Ready", "status": "False" }],
    });
    let path = MACHINES.named(NAMESPACE, "a");
    let status = Step::WriteStatus {
        path,
        status: expected,
        imported: None,
    };
    assert_eq!(steps(&objects), [status]);
    objects.machines[0]["metadata"]["deletionTimestamp"] = ending.clone();
    objects.volumes[0]["metadata"]["deletionTimestamp"] = ending;
    let steps = steps(&objects);
    assert!(steps.is_empty(), "{steps:?}");
}

#[test]
fn shared_volumes_make_a_machine_migratable() {
    for (storage, expected) in [
        (
            json!({ "storage": { "accessModes": ["ReadWriteMany"] } }),
            true,
        ),
        (json!({ "pvc": { "accessModes": ["ReadWriteMany"] } }), true),
        (
            json!({ "storage": { "accessModes": ["ReadWriteOnce"] } }),
            false,
        ),
        (json!({ "storage": {} }), false),
    ] {
        let mut machine = machine("a", "1");
        let spec = &mut machine["spec"]["dataVolumeTemplates"][0]["spec"];
        *spec = json!({ "source": { "blank": {} } });
        let fields = spec.as_object_mut().unwrap();
        fields.extend(storage.as_object().unwrap().clone());
        let objects = settled(vec![machine]);
        let instance = &objects.instances[0];
        // The provider waits for the condition, whatever it says.
        let condition = conditions::find(instance, "LiveMigratable").unwrap();
        let status = if expected { "True" } else { "False" };
        assert_eq!(condition["status"], status, "{storage}");
    }
}

#[test]
fn other_fields_of_a_status_are_not_touched() {
    let mut objects = settled(vec![machine("a", "1")]);
    objects.instances[0]["status"]["evacuationNodeName"] = json!("node");
    let steps = steps(&objects);
    assert!(steps.is_empty(), "{steps:?}");
}

#[test]
fn a_clone_waits_for_its_original_and_imports_nothing() {
    let volume = |name: &str, source: Value| {
        json!({
            "metadata": { "namespace": NAMESPACE, "name": name },
            "spec": { "source": source },
        })
    };
    let mut objects = Objects {
        volumes: vec![volume("disk", json!({ "pvc": { "name": "cache" } }))],
        ..Objects::default()
    };
    assert!(settle(&mut objects).is_empty());
    assert_eq!(objects.volumes[0]["status"]["phase"], "Pending");
    let image = json!({ "registry": { "url": "docker://rhcos" } });
    objects.volumes.push(volume("cache", image));
    assert_eq!(settle(&mut objects), ["docker://rhcos"]);
    assert!(objects.volumes.iter().all(is_filled));
    objects.volumes.push(volume("unknown", json!({ "s3": {} })));
    settle(&mut objects);
    assert_eq!(objects.volumes[2]["status"]["phase"], "Failed");
}
