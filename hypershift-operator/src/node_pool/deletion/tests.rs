//! The order of the deletion of a pool, and its conditions.

use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::control_plane_namespace;
use crate::node_pool::fixtures;
use crate::node_pool::write::FINALIZER;

const POOL: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools/workers";

fn capi(path: &str) -> String {
    let group = Capi::new(CapiTypes::Private).machine().api_version;
    format!("/apis/{group}/namespaces/clusters-dev/{path}")
}

fn namespace() -> Namespace {
    Namespace::Owned(control_plane_namespace::for_tests("clusters-dev"))
}

fn pool() -> NodePool {
    let mut pool = fixtures::pool();
    pool.metadata.finalizers = Some(vec!["example.com/other".to_owned(), FINALIZER.to_owned()]);
    pool
}

/// Objects that are listed twice: once for a pause, once for the deletion.
fn absent(path: &str) -> [Expect; 2] {
    let get = || Expect::get(&capi(path)).answer(Answer::error(404, "NotFound"));
    [get(), get()]
}

#[tokio::test]
async fn deletion_waits_for_machines_and_reports_it() {
    let deployment = json!({
        "metadata": {
            "name": "workers",
            "uid": "1",
            "annotations": { PAUSED: "true" },
            "finalizers": ["cluster.x-k8s.io/machinedeployment"],
        },
    });
    let path = capi("machinedeployments/workers");
    let machine = |name: &str, pool: &str| {
        json!({ "metadata": {
            "name": name,
            "annotations": { "hypershift.openshift.io/nodePool": pool },
            "finalizers": ["machine.cluster.x-k8s.io"],
        } })
    };
    let mut calls = Vec::from(absent("machinehealthchecks/workers"));
    calls.extend(absent("machinehealthchecks/workers-spot"));
    calls.extend([
        Expect::get(&path).answer(Answer::ok(&deployment)),
        // Cluster API does not delete what is paused.
        Expect::patch(&path)
            .body(json!({ "metadata": { "uid": "1", "annotations": { PAUSED: null } } }))
            .answer(Answer::ok(&deployment)),
        Expect::get(&path).answer(Answer::ok(&deployment)),
        Expect::delete(&path).body(json!({ "preconditions": { "uid": "1" } })),
    ]);
    calls.extend(absent("machinesets/workers"));
    let machines = [
        machine("a", "clusters/workers"),
        machine("b", "clusters/others"),
    ];
    calls.extend([
        Expect::get(&capi("machines")).answer(Answer::list(&machines)),
        Expect::get(POOL).answer(Answer::ok(&serde_json::to_value(pool()).unwrap())),
        Expect::patch(&format!("{POOL}/status"))
            .body(json!({ "status": { "conditions": [{
                "type": "Ready",
                "status": "False",
                "reason": "Deleting",
                "message": "Waiting for MachineDeployment workers (finalizers cluster.x-k8s.io/machinedeployment); Machine a (finalizers machine.cluster.x-k8s.io) to be deleted",
            }] } }))
            .answer(Answer::ok(&serde_json::to_value(pool()).unwrap())),
    ]);
    let scenario = Scenario::new(calls);
    let writer = Writer::new(scenario.client());
    let pause = delete(&pool(), &[CapiTypes::Private], &namespace(), &writer)
        .await
        .unwrap();
    scenario.finish();
    assert_eq!(pause, Some(POLL_INTERVAL));
}

#[tokio::test]
async fn deletion_removes_templates_and_secrets_after_machines() {
    let ours = |name: &str| {
        json!({ "metadata": {
            "name": name,
            "uid": name,
            "annotations": { "hypershift.openshift.io/nodePool": "clusters/workers" },
        } })
    };
    let mut calls = Vec::new();
    for path in [
        "machinehealthchecks/workers",
        "machinehealthchecks/workers-spot",
        "machinedeployments/workers",
        "machinesets/workers",
    ] {
        calls.extend(absent(path));
    }
    let templates = Capi::new(CapiTypes::Private).aws_machine_template();
    let templates = format!(
        "/apis/{}/namespaces/clusters-dev/awsmachinetemplates",
        templates.api_version
    );
    let secrets = "/api/v1/namespaces/clusters-dev/secrets";
    let template = format!("{templates}/workers-1");
    let secret = format!("{secrets}/token-workers-1");
    calls.extend([
        Expect::get(&capi("machines")).answer(Answer::list(&[])),
        Expect::get(&templates).answer(Answer::list(&[ours("workers-1")])),
        Expect::get(&template).answer(Answer::ok(&ours("workers-1"))),
        Expect::delete(&template),
        Expect::get(secrets).answer(Answer::list(&[ours("token-workers-1"), json!({ "metadata": { "name": "other" } })])),
        Expect::get(&secret).answer(Answer::ok(&ours("token-workers-1"))),
        Expect::delete(&secret),
        Expect::get("/api/v1/namespaces/clusters-dev/configmaps?labelSelector=").answer(Answer::list(&[])),
        Expect::patch(POOL)
            .body(json!({ "metadata": { "finalizers": ["example.com/other"], "resourceVersion": "7" } }))
            .answer(Answer::ok(&serde_json::to_value(pool()).unwrap())),
    ]);
    let scenario = Scenario::new(calls);
    let writer = Writer::new(scenario.client());
    let pause = delete(&pool(), &[CapiTypes::Private], &namespace(), &writer)
        .await
        .unwrap();
    scenario.finish();
    assert_eq!(pause, None);
}

/// A control plane namespace in which everything has the names of the pool's objects, and nothing is the pool's.
fn populated(annotations: &Value) -> Vec<Expect> {
    let object = |name: &str| {
        json!({ "metadata": {
            "name": name,
            "uid": name,
            "annotations": annotations,
            "finalizers": ["example.com/others"],
        } })
    };
    let templates = Capi::new(CapiTypes::Private).aws_machine_template();
    let templates = format!(
        "/apis/{}/namespaces/clusters-dev/awsmachinetemplates",
        templates.api_version
    );
    let core = |kind: &str| format!("/api/v1/namespaces/clusters-dev/{kind}");
    let mut reads = Vec::new();
    for (kind, name) in [
        (capi("machinehealthchecks"), "workers"),
        (capi("machinehealthchecks"), "workers-spot"),
        (capi("machinedeployments"), "workers"),
        (capi("machinesets"), "workers"),
        (templates.clone(), "workers-1"),
        (core("secrets"), "token-workers-1"),
        (core("configmaps"), "workers"),
    ] {
        reads.push(Expect::get(&format!("{kind}/{name}")).answer(Answer::ok(&object(name))));
    }
    for (kind, name) in [
        (capi("machines"), "workers-1-abcde"),
        (templates, "workers-1"),
        (core("secrets"), "token-workers-1"),
        (core("configmaps"), "workers"),
    ] {
        reads.push(Expect::get(&kind).answer(Answer::list(&[object(name)])));
    }
    reads
}

#[tokio::test]
async fn a_pool_is_released_at_once_in_a_namespace_of_another_cluster() {
    let foreign = Namespace::Foreign {
        name: "clusters-dev".to_owned(),
        owner: "clusters-x/dev".to_owned(),
    };
    let unclaimed = Namespace::Unclaimed("clusters-dev".to_owned());
    let others = json!({
        "hypershift.openshift.io/nodePool": "clusters-x/workers",
        PAUSED: "true",
    });
    let without = json!({ PAUSED: "true" });
    for (namespace, annotations) in [
        (&foreign, &others),
        (&foreign, &without),
        (&unclaimed, &others),
        (&unclaimed, &without),
        (&namespace(), &others),
    ] {
        let release = Expect::patch(POOL)
            .body(json!({ "metadata": { "finalizers": ["example.com/other"] } }))
            .answer(Answer::ok(&serde_json::to_value(pool()).unwrap()));
        // Nothing else is written.
        let scenario = Scenario::new([release]).always(populated(annotations));
        let writer = Writer::new(scenario.client());
        let pause = delete(&pool(), &[CapiTypes::Private], namespace, &writer).await;
        scenario.finish();
        assert_eq!(pause.unwrap(), None, "{namespace:?} {annotations}");
    }
}

#[test]
fn names_that_no_label_can_have_select_nothing() {
    let longest = "a".repeat(LONGEST_LABEL);
    let expected = format!("{POOL_LABEL}={longest}");
    assert_eq!(selector(&longest), Some(expected));
    assert_eq!(selector(&"a".repeat(LONGEST_LABEL + 1)), None);
}
