//! What is reported for clusters in different states.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::hosted::bare_cluster;

fn condition(about: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": about, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2030-01-31T12:00:00Z",
    })
}

fn cluster(status: &Value) -> HostedCluster {
    let mut object = bare_cluster("a");
    object["metadata"]["finalizers"] = json!(["hypershift.openshift.io/finalizer"]);
    object["status"] = status.clone();
    serde_json::from_value(object).unwrap()
}

fn snapshot(status: &Value) -> Snapshot {
    Snapshot {
        cluster: Some(cluster(status)),
        control_plane: None,
        components: Listed::default(),
        pools: Listed::default(),
    }
}

fn component(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "ControlPlaneComponent",
        "metadata": { "name": name },
        "spec": {},
        "status": { "conditions": [condition("RolloutComplete", status, reason, message)] },
    })
}

fn pool_with(replicas: i32, there: i32, message: &str) -> NodePool {
    let mut ready = condition("Ready", "False", "x", message);
    ready["severity"] = json!("");
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": { "namespace": "clusters", "name": "p" },
        "spec": {
            "clusterName": "a",
            "release": { "image": "registry.example.com/release:1" },
            "platform": { "type": "None" },
            "management": { "upgradeType": "Replace" },
            "replicas": replicas,
        },
        "status": { "replicas": there, "conditions": [ready] },
    }))
    .unwrap()
}

fn waits(snapshot: &Snapshot) -> Vec<String> {
    match progress(snapshot) {
        Progress::Done => Vec::new(),
        Progress::Waits(waits) => waits,
    }
}

fn available() -> Value {
    json!({
        "conditions": [condition("Available", "True", "AsExpected", "")],
        "kubeconfig": { "name": "a-admin-kubeconfig" },
    })
}

#[test]
fn a_blocking_condition_is_reported_alone() {
    let refused = condition(
        "ValidReleaseImage",
        "False",
        "InvalidImage",
        "no such image",
    );
    let mut snapshot = snapshot(&json!({ "conditions": [refused] }));
    snapshot.components.items =
        vec![serde_json::from_value(component("etcd", "False", "x", "0 of 3")).unwrap()];
    assert_eq!(waits(&snapshot), ["ValidReleaseImage: no such image"]);
}

#[test]
fn causes_are_listed_and_components_that_wait_for_them_are_counted() {
    let mut snapshot = snapshot(&json!({}));
    snapshot.components.items = [
        component(
            "etcd",
            "False",
            "WaitingForRolloutComplete",
            "0 of 3 replicas",
        ),
        component("kube-apiserver", "False", "WaitingForDependencies", "etcd"),
        component(
            "kube-scheduler",
            "False",
            "WaitingForDependencies",
            "kube-apiserver",
        ),
        component("featuregate-generator", "True", "AsExpected", ""),
    ]
    .into_iter()
    .map(|object| serde_json::from_value(object).unwrap())
    .collect();
    assert_eq!(
        waits(&snapshot),
        ["etcd: 0 of 3 replicas", "2 more components wait for them"]
    );
}

#[test]
fn the_first_components_are_listed_and_the_rest_is_counted() {
    let mut snapshot = snapshot(&json!({}));
    let many = |reason: &str| {
        ["a", "b", "c", "d", "e"]
            .map(|name| component(name, "False", reason, "not yet"))
            .map(|object| serde_json::from_value(object).unwrap())
            .to_vec()
    };
    for reason in ["WaitingForRolloutComplete", "WaitingForDependencies"] {
        snapshot.components.items = many(reason);
        assert_eq!(
            waits(&snapshot),
            [
                "a: not yet",
                "b: not yet",
                "c: not yet",
                "2 more components are not rolled out"
            ]
        );
    }
}

#[test]
fn without_components_the_operator_is_reported() {
    let lines = waits(&snapshot(&json!({})));
    assert_eq!(lines, ["the operator has not made its control plane yet"]);
}

#[test]
fn nodes_are_waited_for_last() {
    let mut snapshot = snapshot(&available());
    assert_eq!(progress(&snapshot), Progress::Done);
    snapshot.pools.items = vec![pool_with(3, 1, "machines are being made")];
    assert_eq!(
        waits(&snapshot),
        ["node pool p has 1 of 3 nodes: machines are being made"]
    );
    snapshot.pools.items = vec![pool_with(3, 3, "")];
    assert_eq!(progress(&snapshot), Progress::Done);
}

#[test]
fn a_pool_that_does_not_deserialize_is_reported_by_name() {
    let mut snapshot = snapshot(&available());
    let odd = json!({ "metadata": { "namespace": "clusters", "name": "odd" }, "spec": {} });
    let odd: DynamicObject = serde_json::from_value(odd).unwrap();
    snapshot.pools = [odd].into_iter().collect();
    let lines = waits(&snapshot);
    assert!(
        lines.len() == 1 && lines[0].contains("clusters/odd: "),
        "{lines:?}"
    );
    assert_eq!(
        left(&cluster(&json!({})), &snapshot.pools),
        "node pools clusters/odd"
    );
}

#[test]
fn what_is_left_of_a_deleted_cluster_is_reported() {
    let cluster = cluster(&json!({}));
    let pools = Listed {
        items: vec![pool_with(0, 0, "")],
        ..Listed::default()
    };
    assert_eq!(left(&cluster, &pools), "node pools p");
    assert_eq!(
        left(&cluster, &Listed::default()),
        "held by hypershift.openshift.io/finalizer"
    );
    let said = condition(
        "HostedClusterDestroyed",
        "False",
        "Waiting",
        "2 machines are left",
    );
    let cluster = self::cluster(&json!({ "conditions": [said] }));
    assert_eq!(left(&cluster, &Listed::default()), "2 machines are left");
}
