//! What is told of clusters in different states.

use serde_json::{Value, json};

use super::*;

fn condition(about: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": about, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2030-01-31T12:00:00Z",
    })
}

fn cluster(status: &Value) -> HostedCluster {
    let object = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": { "namespace": "clusters", "name": "a", "finalizers": ["hypershift.openshift.io/finalizer"] },
        "spec": {
            "release": { "image": "registry.example.com/release:1" },
            "platform": { "type": "None" },
            "networking": {},
            "services": [],
            "etcd": { "managementType": "Managed" },
            "pullSecret": { "name": "a-pull-secret" },
        },
        "status": status,
    });
    serde_json::from_value(object).unwrap()
}

fn sight(status: &Value) -> Sight {
    Sight {
        cluster: Some(cluster(status)),
        control_plane: None,
        components: Vec::new(),
        pools: Vec::new(),
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

fn waits(sight: &Sight) -> Vec<String> {
    match progress(sight) {
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
fn what_somebody_must_change_is_told_alone() {
    let refused = condition(
        "ValidReleaseImage",
        "False",
        "InvalidImage",
        "no such image",
    );
    let mut sight = sight(&json!({ "conditions": [refused] }));
    sight.components =
        vec![serde_json::from_value(component("etcd", "False", "x", "0 of 3")).unwrap()];
    assert_eq!(waits(&sight), ["ValidReleaseImage: no such image"]);
}

#[test]
fn causes_are_told_and_those_that_wait_for_them_are_counted() {
    let mut sight = sight(&json!({}));
    sight.components = [
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
        waits(&sight),
        ["etcd: 0 of 3 replicas", "2 more components wait for them"]
    );
}

#[test]
fn of_many_components_the_first_are_told_and_the_rest_is_counted() {
    let mut sight = sight(&json!({}));
    let many = |reason: &str| {
        ["a", "b", "c", "d", "e"]
            .map(|name| component(name, "False", reason, "not yet"))
            .map(|object| serde_json::from_value(object).unwrap())
            .to_vec()
    };
    for reason in ["WaitingForRolloutComplete", "WaitingForDependencies"] {
        sight.components = many(reason);
        assert_eq!(
            waits(&sight),
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
fn before_there_are_components_the_operator_is_told() {
    let told = waits(&sight(&json!({})));
    assert_eq!(told, ["the operator has not made its control plane yet"]);
}

#[test]
fn nodes_are_waited_for_last() {
    let mut sight = sight(&available());
    assert_eq!(progress(&sight), Progress::Done);
    sight.pools = vec![pool_with(3, 1, "machines are being made")];
    assert_eq!(
        waits(&sight),
        ["node pool p has 1 of 3 nodes: machines are being made"]
    );
    sight.pools = vec![pool_with(3, 3, "")];
    assert_eq!(progress(&sight), Progress::Done);
}

#[test]
fn what_is_left_of_a_deleted_cluster_is_told() {
    let cluster = cluster(&json!({}));
    assert_eq!(left(&cluster, &[pool_with(0, 0, "")]), "node pools p");
    assert_eq!(
        left(&cluster, &[]),
        "held by hypershift.openshift.io/finalizer"
    );
    let said = condition(
        "HostedClusterDestroyed",
        "False",
        "Waiting",
        "2 machines are left",
    );
    let cluster = self::cluster(&json!({ "conditions": [said] }));
    assert_eq!(left(&cluster, &[]), "2 machines are left");
}
