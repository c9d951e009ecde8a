//! Passes against a mock API server.

use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::super::context::testing::{Cached, context, control_plane, refused, status_put};
use super::*;

const WEBHOOK: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hosted-cluster-resource-cleanup";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const REGISTRY: &str = "/apis/imageregistry.operator.openshift.io/v1/configs/cluster";
const INGRESS: &str = "/apis/operator.openshift.io/v1/ingresscontrollers";
const ROUTERS: &str = "/api/v1/namespaces/openshift-ingress/pods";
const SERVICES: &str = "/api/v1/services";
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";
const PODS: &str = "/api/v1/pods";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshots";
const SERVER: &str = "/apis/apps/v1/namespaces/clusters-a/deployments/kube-apiserver";

/// A cluster that is being deleted, and whose cleanup is due.
fn due(spec: &Value) -> Value {
    let mut object = control_plane(spec);
    object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    object["metadata"]["annotations"] =
        json!({ "hypershift.openshift.io/cleanup-cloud-resources": "true" });
    object["status"] = json!({ "conditions": [{ "type": "CVOScaledDown", "status": "True" }] });
    object
}

fn object(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut metadata = json!({ "name": name, "uid": format!("uid-{name}") });
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    json!({ "metadata": metadata, "spec": spec })
}

fn found(path: &str, items: &[Value]) -> Expect {
    Expect::get(path).answer(Answer::list(items))
}

fn missing() -> Answer {
    Answer::error(404, "NotFound")
}

/// A deletion of just this object.
fn deletion(path: &str, name: &str) -> Expect {
    let body = json!({ "preconditions": { "uid": format!("uid-{name}") } });
    Expect::delete(&format!("{path}/{name}")).body(body)
}

fn has_server() -> Expect {
    Expect::get(SERVER).answer(Answer::ok(&object(
        "clusters-a",
        "kube-apiserver",
        &json!({}),
    )))
}

/// The creation of more is blocked.
fn blocked() -> [Expect; 2] {
    let fails_closed = json!({ "webhooks": [{ "failurePolicy": "Fail" }] });
    let answer = Answer::ok(&json!({ "metadata": { "name": "hosted-cluster-resource-cleanup" } }));
    [
        Expect::get(WEBHOOK).answer(missing()),
        Expect::patch(WEBHOOK).body(fails_closed).answer(answer),
    ]
}

fn reported(status: &str, reason: &str, message: &str) -> Expect {
    status_put(json!([
        { "type": "CVOScaledDown" },
        {
            "type": "CloudResourcesDestroyed", "status": status, "reason": reason,
            "message": message,
        },
    ]))
}

/// The lists of a cluster with nothing left; the kinds of operators that are gone are not served.
fn nothing_left() -> Vec<Expect> {
    vec![
        Expect::get(REGISTRY).answer(missing()),
        Expect::get(INGRESS).answer(missing()),
        found(ROUTERS, &[]),
        found(SERVICES, &[]),
        found(CLAIMS, &[]),
        found(VOLUMES, &[]),
        Expect::get(SNAPSHOTS).answer(missing()),
    ]
}

async fn passes(object: Value, calls: Vec<Expect>, count: usize) -> Vec<Result<(), Error>> {
    let scenario = Scenario::new(calls);
    let ctx = context(&scenario, Cached::of(object)).await;
    let mut results = Vec::new();
    for _ in 0..count {
        results.push(pass(&ctx).await);
    }
    scenario.finish();
    results
}

async fn succeeds(object: Value, calls: Vec<Expect>) {
    for result in passes(object, calls, 1).await {
        result.unwrap();
    }
}

#[tokio::test]
async fn creation_is_blocked_before_anything_is_deleted() {
    let mut calls = vec![has_server()];
    calls.extend(blocked());
    calls.extend(nothing_left());
    let message = "All cloud resources of the hosted cluster are deleted";
    calls.push(reported("True", "CloudResourcesDestroyed", message));
    succeeds(due(&json!({})), calls).await;
}

#[tokio::test]
async fn cloud_resources_are_deleted_in_order_and_waited_for() {
    let service = |name: &str, type_: &str| object("shop", name, &json!({ "type": type_ }));
    let mut of_ingress = service("router", "LoadBalancer");
    of_ingress["metadata"]["labels"] =
        json!({ "ingresscontroller.operator.openshift.io/owning-ingresscontroller": "default" });
    let mut leaving = object("shop", "leaving", &json!({}));
    leaving["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    let claim = json!({ "volumes": [{ "name": "d", "persistentVolumeClaim": { "claimName": "data" } }], "containers": [] });
    let volume = |policy: &str| json!({ "claimRef": { "name": "data" }, "persistentVolumeReclaimPolicy": policy });
    let registry = json!({
        "metadata": { "name": "cluster" }, "spec": { "managementState": "Managed" },
        "status": { "storage": { "managementState": "Managed" } },
    });
    let mut calls = vec![has_server()];
    calls.extend(blocked());
    calls.extend([
        Expect::get(REGISTRY).answer(Answer::ok(&registry)),
        Expect::patch(REGISTRY).body(json!({ "spec": { "managementState": "Removed" } })),
        found(
            INGRESS,
            &[object("openshift-ingress-operator", "default", &json!({}))],
        ),
        deletion(
            "/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers",
            "default",
        ),
        found(
            ROUTERS,
            &[object("openshift-ingress", "router-1", &json!({ "containers": [] }))],
        ),
        deletion(ROUTERS, "router-1").body(json!({ "gracePeriodSeconds": 0 })),
        found(
            SERVICES,
            &[service("web", "LoadBalancer"), of_ingress, service("db", "ClusterIP")],
        ),
        deletion("/api/v1/namespaces/shop/services", "web"),
        found(CLAIMS, &[object("shop", "data", &json!({})), leaving]),
        deletion("/api/v1/namespaces/shop/persistentvolumeclaims", "data"),
        found(
            PODS,
            &[
                object("shop", "uses-it", &claim),
                object("shop", "does-not", &json!({ "containers": [] })),
            ],
        ),
        deletion("/api/v1/namespaces/shop/pods", "uses-it").body(json!({ "gracePeriodSeconds": 0 })),
        found(
            VOLUMES,
            &[object("", "pv-1", &volume("Delete")), object("", "pv-2", &volume("Retain"))],
        ),
        found(SNAPSHOTS, &[object("shop", "snap", &json!({}))]),
        deletion(
            "/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots",
            "snap",
        ),
        reported(
            "False",
            "RemainingCloudResources",
            "Waiting for deletion of 1 image-registry (cluster); 1 ingress-controllers (openshift-ingress-operator/default); 2 loadbalancers (shop/web, shop/router); 1 persistent-volumes (pv-1); 1 volume-snapshots (shop/snap)",
        ),
    ]);
    succeeds(due(&json!({})), calls).await;
}

#[tokio::test]
async fn disabled_capabilities_have_no_cloud_resources() {
    let mut calls = vec![has_server()];
    calls.extend(blocked());
    calls.extend(nothing_left().into_iter().skip(3));
    let message = "All cloud resources of the hosted cluster are deleted";
    calls.push(reported("True", "CloudResourcesDestroyed", message));
    let disabled = json!({ "capabilities": { "disabled": ["ImageRegistry", "Ingress"] } });
    succeeds(due(&disabled), calls).await;
}

#[tokio::test]
async fn nothing_is_deleted_while_more_can_be_created() {
    let [get, patch] = blocked();
    let calls = vec![
        has_server(),
        get,
        patch.answer(refused()),
        status_put(json!([{}, { "status": "False", "reason": "ErrorOccurred" }])),
    ];
    succeeds(due(&json!({})), calls).await;
}

#[tokio::test]
async fn step_that_fails_does_not_prevent_the_others() {
    let mut calls = vec![has_server()];
    calls.extend(blocked());
    let mut steps = nothing_left();
    steps[3] = Expect::get(SERVICES).answer(refused());
    calls.extend(steps);
    calls.push(status_put(json!([
        {},
        { "status": "False", "reason": "ErrorOccurred" },
    ])));
    let results = passes(due(&json!({})), calls, 1).await;
    assert!(results[0].is_ok());
}

#[tokio::test]
async fn cleanup_requires_annotation_and_a_stopped_operator() {
    let with = |pointer: &str, value: Value| {
        let mut object = due(&json!({}));
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let annotation = "/metadata/annotations/hypershift.openshift.io~1cleanup-cloud-resources";
    for object in [
        with("/metadata/deletionTimestamp", Value::Null),
        with(annotation, json!("false")),
        with("/status/conditions/0/status", json!("False")),
        with("/status/conditions", json!([])),
    ] {
        succeeds(object, vec![]).await;
    }
}

#[tokio::test]
async fn registry_policy_of_azure_is_deleted_with_the_cluster() {
    let azure = json!({ "platform": { "type": "Azure" } });
    let name = "deny-removed-managementstate";
    let removed = || {
        [
            Expect::delete(&format!("{BINDINGS}/{name}-binding")),
            Expect::delete(&format!("{POLICIES}/{name}")).answer(missing()),
        ]
    };
    // Not requested: users may remove the registry themselves.
    let mut object = due(&azure);
    object["metadata"]["annotations"] = json!({});
    succeeds(object, removed().to_vec()).await;
    let mut calls = vec![has_server()];
    calls.extend(removed());
    calls.extend(blocked());
    calls.extend(nothing_left());
    calls.push(status_put(json!([{}, { "status": "True" }])));
    succeeds(due(&azure), calls).await;
    // The policy stays while its binding does, and the next pass tries again.
    let [binding, _] = removed();
    let mut object = due(&azure);
    object["status"] = json!({});
    let results = passes(object, vec![binding.answer(refused())], 1).await;
    assert!(results[0].is_err());
    // The cluster is not being deleted.
    succeeds(control_plane(&azure), vec![]).await;
}

#[tokio::test]
async fn cleanup_ends_without_an_api_server() {
    let message = "Skipped cleanup: KubeAPIServerUnavailable. Check the cloud account for leftover load balancers, volumes and buckets.";
    let calls = vec![
        Expect::get(SERVER).answer(missing()),
        reported("False", "CloudResourcesCleanupSkipped", message),
    ];
    succeeds(due(&json!({})), calls).await;
}

#[tokio::test]
async fn cleanup_ends_after_repeated_failures_to_connect() {
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(has_server());
        calls.push(Expect::get(WEBHOOK).answer(Answer::error(503, "ServiceUnavailable")));
        calls.push(status_put(json!([{}, { "reason": "ErrorOccurred" }])));
    }
    // No further request to the hosted cluster.
    let skipped = json!({ "status": "False", "reason": "CloudResourcesCleanupSkipped" });
    calls.push(status_put(json!([{}, skipped])));
    for result in passes(due(&json!({})), calls, 6).await {
        result.unwrap();
    }
}

#[tokio::test]
async fn unwritten_condition_is_an_error() {
    let calls = vec![
        Expect::get(SERVER).answer(missing()),
        status_put(json!([{}, { "reason": "CloudResourcesCleanupSkipped" }])).answer(refused()),
    ];
    let results = passes(due(&json!({})), calls, 1).await;
    let error = results[0].as_ref().unwrap_err().to_string();
    assert_eq!(error, "failed to update status of HostedControlPlane a");
}
