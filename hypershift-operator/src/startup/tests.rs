//! The scan against a mock API server: the order of its requests, and what an error stops.

use api::group::CapiTypes;
use ownership::{Namespace, ObservedGroups, Scope};
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::metrics::Metrics;

const HOSTED_CLUSTERS: &str = "/apis/hypershift.openshift.io/v1beta1/hostedclusters";
const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAMESPACES: &str = "/api/v1/namespaces";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/machines";
const MACHINES_OF_ONE: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/clusters-one/machines";

fn context(scope: Scope, scenario: &Scenario) -> Context {
    let config = Config::for_tests(scope);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    Context::for_tests(&config, scenario.client(), releases, &metrics)
}

fn cluster(version: &str, annotations: &Value) -> Value {
    json!({
        "metadata": {
            "namespace": "clusters",
            "name": "one",
            "uid": "u",
            "resourceVersion": version,
            "annotations": annotations,
        },
    })
}

fn machine() -> Value {
    json!({ "metadata": { "namespace": "clusters-one", "name": "m" } })
}

fn crds(names: &[&str]) -> Expect {
    let items: Vec<_> = names
        .iter()
        .map(|name| json!({ "metadata": { "name": name } }))
        .collect();
    Expect::get(CRDS).answer(Answer::list(&items))
}

/// Discovery of a group that has machines.
fn group() -> [Expect; 2] {
    let version = json!({ "groupVersion": "cluster.x-k8s.io/v1beta2", "version": "v1beta2" });
    let versions =
        json!({ "name": "cluster.x-k8s.io", "versions": [version], "preferredVersion": version });
    let machines = json!({ "name": "machines", "singularName": "machine", "namespaced": true, "kind": "Machine", "verbs": ["list"] });
    let resources = json!({ "groupVersion": "cluster.x-k8s.io/v1beta2", "resources": [machines] });
    [
        Expect::get("/apis/cluster.x-k8s.io").answer(Answer::ok(&versions)),
        Expect::get("/apis/cluster.x-k8s.io/v1beta2").answer(Answer::ok(&resources)),
    ]
}

fn scan_calls(clusters: &[Value], machines: Answer) -> Vec<Expect> {
    evaluation_calls(clusters, machines, false)
}

/// All requests of an evaluation; none after the machines if their list is forbidden.
fn evaluation_calls(clusters: &[Value], machines: Answer, is_refused: bool) -> Vec<Expect> {
    let mut calls = vec![
        Expect::get(HOSTED_CLUSTERS).answer(Answer::list(clusters)),
        crds(&["machines.cluster.x-k8s.io", "widgets.example.com"]),
    ];
    calls.extend(group());
    calls.push(Expect::get(MACHINES).answer(machines));
    if !is_refused {
        calls.push(namespaces("clusters/one"));
    }
    calls
}

fn namespace(owner: &str) -> Value {
    json!({ "metadata": {
        "name": "clusters-one",
        "annotations": { "hypershift.openshift.io/cluster": owner },
    } })
}

fn namespaces(owner: &str) -> Expect {
    Expect::get(NAMESPACES).answer(Answer::list(&[namespace(owner)]))
}

/// The control plane namespace of the HostedCluster.
async fn found() -> Namespace {
    let scenario = Scenario::new([Expect::get(&format!("{NAMESPACES}/clusters-one"))
        .answer(Answer::ok(&namespace("clusters/one")))]);
    let found = control_plane_namespace::find(&scenario.client(), "clusters", "one").await;
    found.unwrap()
}

fn annotate(version: &str, annotations: &Value) -> Expect {
    Expect::patch(ONE).body(json!({
        "metadata": { "uid": "u", "resourceVersion": version, "annotations": annotations },
    }))
}

fn legacy() -> Value {
    json!({ "hypershift.openshift.io/scope": "legacy" })
}

/// Check O01.
#[tokio::test]
async fn a_cluster_with_standard_objects_is_annotated_legacy() {
    let mut calls = scan_calls(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
    calls.push(annotate("7", &legacy()).answer(Answer::ok(&cluster("8", &legacy()))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

/// Check O01.
#[tokio::test]
async fn a_forbidden_list_stops_the_scan_before_any_write() {
    let denied = Answer::error(403, "Forbidden");
    let scenario = Scenario::new(evaluation_calls(&[cluster("7", &json!({}))], denied, true));
    let error = scan(&context(Scope::Private, &scenario)).await.unwrap_err();
    assert_eq!((error.step(), error.reason()), ("list", "Forbidden"));
    assert!(chain(&error).contains("machines.cluster.x-k8s.io"));
    scenario.finish();
}

/// Check O01.
#[tokio::test]
async fn without_standard_crds_there_are_no_standard_objects() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let scenario = Scenario::new([
        Expect::get(HOSTED_CLUSTERS).answer(Answer::list(&[cluster("7", &json!({}))])),
        crds(&["widgets.example.com"]),
        namespaces("clusters/one"),
        annotate("7", &private).answer(Answer::ok(&cluster("8", &private))),
    ]);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn after_a_conflict_the_cluster_is_evaluated_again() {
    let mut calls = scan_calls(&[cluster("7", &json!({}))], Answer::list(&[]));
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    calls.push(annotate("7", &private).answer(Answer::error(409, "Conflict")));
    calls.push(Expect::get(ONE).answer(Answer::ok(&cluster("9", &json!({})))));
    let path = format!("{NAMESPACES}/clusters-one");
    calls.push(Expect::get(&path).answer(Answer::ok(&namespace("clusters/one"))));
    calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[machine()])));
    calls.push(annotate("9", &legacy()).answer(Answer::ok(&cluster("10", &legacy()))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn a_cluster_deleted_during_the_scan_is_no_error() {
    let mut calls = scan_calls(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
    calls.push(annotate("7", &legacy()).answer(Answer::error(404, "NotFound")));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn an_annotated_cluster_is_not_written_again() {
    let calls = scan_calls(&[cluster("7", &legacy())], Answer::list(&[machine()]));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

/// Check O02.
#[tokio::test]
async fn other_scopes_write_no_annotations() {
    for scope in [Scope::Legacy, Scope::All] {
        let calls = scan_calls(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
        let scenario = Scenario::new(calls);
        scan(&context(scope, &scenario)).await.unwrap();
        scenario.finish();
    }
}

/// Check O01.
#[tokio::test]
async fn scanned_groups_are_reused_only_if_annotations_agree() {
    let crd = || crds(&["machines.cluster.x-k8s.io"]);
    let list_machines = || Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[machine()]));
    let mut calls = scan_calls(&[cluster("7", &legacy())], Answer::list(&[machine()]));
    calls.extend([list_machines(), list_machines(), crd()]);
    calls.extend(group());
    calls.extend([list_machines(), crd()]);
    calls.extend(group());
    calls.push(Expect::get(MACHINES).answer(Answer::error(403, "Forbidden")));
    calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::error(403, "Forbidden")));
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    scan(&ctx).await.unwrap();
    let namespace = found().await;
    let of = async |expected| ctx.observed_groups.of_annotated(&namespace, expected).await;
    // No request is sent.
    assert_eq!(
        of(Some(CapiTypes::Standard)).await.unwrap(),
        ObservedGroups::Standard
    );
    assert_eq!(
        of(Some(CapiTypes::Private)).await.unwrap(),
        ObservedGroups::Standard
    );
    assert_eq!(of(None).await.unwrap(), ObservedGroups::Standard);
    ctx.observed_groups.invalidate();
    assert_eq!(
        of(Some(CapiTypes::Standard)).await.unwrap(),
        ObservedGroups::Standard
    );
    // After a forbidden list the groups are unknown.
    ctx.observed_groups.everywhere().await.unwrap_err();
    of(Some(CapiTypes::Standard)).await.unwrap_err();
    scenario.finish();
}

/// Check O01.
#[tokio::test]
async fn an_empty_result_is_reused_only_for_annotated_clusters() {
    let crd = || crds(&["machines.cluster.x-k8s.io"]);
    let list_machines = || Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[]));
    let mut calls = vec![crd()];
    calls.extend(group());
    calls.extend([list_machines(), list_machines()]);
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    let namespace = found().await;
    let of = async |expected| ctx.observed_groups.of_annotated(&namespace, expected).await;
    assert_eq!(of(None).await.unwrap(), ObservedGroups::None);
    // No request is sent.
    assert_eq!(
        of(Some(CapiTypes::Private)).await.unwrap(),
        ObservedGroups::None
    );
    assert_eq!(
        of(Some(CapiTypes::Standard)).await.unwrap(),
        ObservedGroups::None
    );
    assert_eq!(of(None).await.unwrap(), ObservedGroups::None);
    scenario.finish();
}

/// Check T01: objects in a namespace of another cluster are not observed for this one.
#[tokio::test]
async fn objects_of_another_cluster_are_not_observed() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let clusters = [cluster("7", &json!({}))];
    let mut calls = evaluation_calls(&clusters, Answer::list(&[machine()]), true);
    calls.push(namespaces("clusters-x/one"));
    calls.push(annotate("7", &private).answer(Answer::ok(&cluster("8", &private))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
    let foreign = Namespace::Foreign {
        name: "clusters-one".to_owned(),
        owner: "clusters-x/one".to_owned(),
    };
    // No request is sent.
    let scenario = Scenario::new([]);
    let ctx = context(Scope::Private, &scenario);
    assert_eq!(
        ctx.observed_groups.of(&foreign).await.unwrap(),
        ObservedGroups::None
    );
    let annotated = ctx
        .observed_groups
        .of_annotated(&foreign, Some(CapiTypes::Standard))
        .await;
    assert_eq!(annotated.unwrap(), ObservedGroups::None);
    scenario.finish();
}

/// Check T01: users can write the migration lock, so it counts only for a cluster that owns its namespace.
#[tokio::test]
async fn a_forged_lock_is_not_evaluated_as_a_migration() {
    let locked = json!({
        "hypershift.openshift.io/scope": "legacy",
        "hypershift.openshift.io/migration-in-progress": "true",
    });
    for (owner, is_refused) in [("clusters/one", false), ("clusters-x/one", true)] {
        let clusters = [cluster("7", &locked)];
        let mut calls = evaluation_calls(&clusters, Answer::list(&[machine()]), true);
        calls.push(namespaces(owner));
        let scenario = Scenario::new(calls);
        let ctx = context(Scope::Private, &scenario);
        let evaluated = evaluation::from_api(&ctx).await.unwrap();
        scenario.finish();
        assert_eq!(evaluated[0].is_refused, is_refused, "{owner}");
        let is_locked = evaluated[0].evaluation.owner == Owner::Migration;
        assert_eq!(is_locked, !is_refused, "{owner}");
    }
}

/// Check T14: one cluster with repeated write conflicts does not block the others.
#[tokio::test]
async fn a_cluster_that_is_written_all_the_time_is_deferred() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let mut calls = scan_calls(&[cluster("7", &json!({}))], Answer::list(&[]));
    let path = format!("{NAMESPACES}/clusters-one");
    for attempt in 0..ATTEMPTS {
        let version = (7 + attempt).to_string();
        let next = cluster(&(8 + attempt).to_string(), &json!({}));
        calls.push(annotate(&version, &private).answer(Answer::error(409, "Conflict")));
        calls.push(Expect::get(ONE).answer(Answer::ok(&next)));
        calls.push(Expect::get(&path).answer(Answer::ok(&namespace("clusters/one"))));
        calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[])));
    }
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    scan(&ctx).await.unwrap();
    scenario.finish();
    // No evaluation was recorded: its own reconcile does that.
    let id = crate::cluster_ref::Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    };
    assert_eq!(ctx.cluster_states.evaluation(&id), None);
}
