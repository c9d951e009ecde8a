//! Instances and pods as an API server would have them, and what is requested for them.

use super::*;
use crate::conditions;
use crate::virtual_machines::MACHINES;
use crate::virtual_machines::plan::steps;

const NAMESPACE: &str = "vms";
const IMAGE: &str = "registry.testbed:5000/pause:testbed";

/// A machine, its instance, and no pod.
fn objects() -> Objects {
    let machine = json!({
        "metadata": { "namespace": NAMESPACE, "name": "a", "uid": "machine" },
        "spec": { "runStrategy": "Always" },
    });
    let instance = json!({
        "metadata": {
            "namespace": NAMESPACE,
            "name": "a",
            "uid": "instance",
            "labels": { "hypershift.openshift.io/infra-id": "one-x7k2p" },
            "ownerReferences": [{ "kind": MACHINE, "name": "a", "uid": "machine" }],
        },
        "spec": {
            "nodeSelector": { "disk": "fast" },
            "volumes": [
                { "name": "rhcos", "dataVolume": { "name": "a-rhcos" } },
                { "name": "init", "cloudInitConfigDrive": { "secretRef": { "name": "user-data-a" } } },
            ],
        },
    });
    Objects {
        machines: vec![machine],
        instances: vec![instance],
        volumes: Vec::new(),
        pods: Some(Pods {
            all: Vec::new(),
            image: IMAGE.to_owned(),
        }),
    }
}

/// The same with the pod that is requested for it, in a phase, with an address in all but the first.
fn with_pod(phase: &str) -> Objects {
    let mut objects = objects();
    let pods = objects.pods.as_mut().unwrap();
    let mut pod = pod_of(&objects.instances[0], IMAGE);
    pod["metadata"]["uid"] = json!("pod");
    pod["spec"]["nodeName"] = json!("node-1");
    pod["status"] = json!({ "phase": phase, "qosClass": "BestEffort" });
    if phase != "Pending" {
        pod["status"]["podIP"] = json!("198.18.8.7");
    }
    pods.all.push(pod);
    objects
}

/// The pods of objects.
fn pods(objects: &mut Objects) -> &mut Vec<Value> {
    &mut objects.pods.as_mut().unwrap().all
}

/// What is requested for instances and pods: a word for each.
fn requested(objects: &Objects) -> Vec<String> {
    let of_machines = MACHINES.within(NAMESPACE);
    let all = steps(objects).into_iter();
    let words = all.filter_map(|step| match step {
        Step::Create { path, .. } => Some(format!("create {path}")),
        Step::WriteStatus { path, .. } if path.starts_with(&of_machines) => None,
        Step::WriteStatus { status, .. } => Some(format!(
            "{} {}",
            status["phase"].as_str().unwrap(),
            status["conditions"][0]["status"].as_str().unwrap()
        )),
        Step::Delete { path } => Some(format!("delete {path}")),
    });
    words.collect()
}

const PODS_PATH: &str = "create /api/v1/namespaces/vms/pods";
const POD_ENDS: &str = "delete /api/v1/namespaces/vms/pods/virt-launcher-a";
const INSTANCE_ENDS: &str = "delete /apis/kubevirt.io/v1/namespaces/vms/virtualmachineinstances/a";

#[test]
fn instances_are_ready_with_their_pods() {
    assert_eq!(requested(&objects()), [PODS_PATH, "Scheduling False"]);
    assert_eq!(requested(&with_pod("Pending")), ["Scheduling False"]);
    let objects = with_pod(RUNNING);
    assert_eq!(requested(&objects), ["Running True"]);
    let status = running(
        &objects,
        &objects.instances[0],
        Ipv4Addr::new(198, 18, 8, 7),
    );
    let instance = json!({ "status": status });
    assert_eq!(
        instance["status"]["interfaces"][0]["ipAddress"],
        "198.18.8.7"
    );
    // The provider waits for it.
    assert!(conditions::find(&instance, "LiveMigratable").is_some());
}

#[test]
fn a_machine_that_loses_its_pod_fails() {
    let mut lost = objects();
    let mut ended = with_pod("Failed");
    let mut ending = with_pod(RUNNING);
    pods(&mut ending)[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for objects in [&mut lost, &mut ended, &mut ending] {
        objects.instances[0]["status"]["phase"] = json!(RUNNING);
        assert_eq!(requested(objects), [INSTANCE_ENDS], "{objects:?}");
        assert!(machines(objects).is_empty());
    }
}

#[test]
fn pods_go_with_their_instance() {
    let mut gone = with_pod(RUNNING);
    gone.machines.clear();
    gone.instances.clear();
    assert_eq!(requested(&gone), [POD_ENDS]);
    let mut ending = with_pod(RUNNING);
    ending.instances[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(requested(&ending), [POD_ENDS]);
    assert!(machines(&ending).is_empty());
    // The next instance of the machine waits for the end of the pod of the one before.
    let mut replaced = with_pod(RUNNING);
    replaced.instances[0]["metadata"]["uid"] = json!("another");
    assert_eq!(requested(&replaced), ["Scheduling False", POD_ENDS]);
    assert!(machines(&replaced).is_empty());
    // Other pods are not touched.
    let mut other = objects();
    other.instances.clear();
    other.machines.clear();
    let pod = json!({ "metadata": { "namespace": NAMESPACE, "name": "etcd-0" } });
    pods(&mut other).push(pod);
    assert!(requested(&other).is_empty());
}

#[test]
fn a_stopped_machine_does_not_run() {
    let mut objects = with_pod(RUNNING);
    assert_eq!(machines(&objects).len(), 1);
    objects.machines[0]["spec"]["runStrategy"] = json!("Halted");
    assert!(requested(&objects).contains(&INSTANCE_ENDS.to_owned()));
    // A deleted one ends before its instance does.
    objects.machines.clear();
    assert!(machines(&objects).is_empty());
}

#[test]
fn machines_are_what_their_pods_and_instances_say() {
    let expected = Wanted {
        namespace: NAMESPACE.to_owned(),
        name: "a".to_owned(),
        owner: "machine".to_owned(),
        address: Ipv4Addr::new(198, 18, 8, 7),
        group: "node-1/kubepods/besteffort/podpod".to_owned(),
        user_data: Some("user-data-a".to_owned()),
    };
    assert_eq!(machines(&with_pod(RUNNING)), [expected]);
    let guaranteed = json!({
        "metadata": { "uid": "pod" },
        "spec": { "nodeName": "node-2" },
        "status": { "qosClass": "Guaranteed" },
    });
    assert_eq!(group(&guaranteed), "node-2/kubepods/podpod");
}

#[test]
fn pods_have_the_labels_that_policies_select() {
    let objects = objects();
    let pod = pod_of(&objects.instances[0], IMAGE);
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["kubevirt.io"], "virt-launcher");
    assert_eq!(labels["hypershift.openshift.io/infra-id"], "one-x7k2p");
    assert_eq!(pod["spec"]["nodeSelector"]["disk"], "fast");
    assert_eq!(pod["spec"]["containers"][0]["image"], IMAGE);
    assert!(pod["spec"].get("affinity").is_none());
}
