//! The scan before an API server of expected calls: what is read before what is written, and what an error stops.

use api::group::Side;
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

fn survey(clusters: &[Value], machines: Answer) -> Vec<Expect> {
    seen(clusters, machines, false)
}

/// All that a survey reads; nothing after the machines if they are refused.
fn seen(clusters: &[Value], machines: Answer, is_refused: bool) -> Vec<Expect> {
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

/// What was found out about the namespace of the cluster.
async fn found() -> Namespace {
    let scenario = Scenario::new([Expect::get(&format!("{NAMESPACES}/clusters-one"))
        .answer(Answer::ok(&namespace("clusters/one")))]);
    let found = control_plane_namespace::find(&scenario.client(), "clusters", "one").await;
    found.unwrap()
}

fn mark(version: &str, annotations: &Value) -> Expect {
    Expect::patch(ONE).body(json!({
        "metadata": { "uid": "u", "resourceVersion": version, "annotations": annotations },
    }))
}

fn legacy() -> Value {
    json!({ "hypershift.openshift.io/scope": "legacy" })
}

#[tokio::test]
async fn o01_a_cluster_with_standard_objects_is_marked_legacy() {
    let mut calls = survey(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
    calls.push(mark("7", &legacy()).answer(Answer::ok(&cluster("8", &legacy()))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn o01_a_denied_list_stops_the_scan_before_any_write() {
    let denied = Answer::error(403, "Forbidden");
    let scenario = Scenario::new(seen(&[cluster("7", &json!({}))], denied, true));
    let error = scan(&context(Scope::Private, &scenario)).await.unwrap_err();
    assert_eq!((error.step(), error.reason()), ("list", "Forbidden"));
    assert!(chain(&error).contains("machines.cluster.x-k8s.io"));
    scenario.finish();
}

#[tokio::test]
async fn o01_without_standard_crds_there_are_no_standard_objects() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let scenario = Scenario::new([
        Expect::get(HOSTED_CLUSTERS).answer(Answer::list(&[cluster("7", &json!({}))])),
        crds(&["widgets.example.com"]),
        namespaces("clusters/one"),
        mark("7", &private).answer(Answer::ok(&cluster("8", &private))),
    ]);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn after_a_conflict_the_mark_is_decided_anew() {
    let mut calls = survey(&[cluster("7", &json!({}))], Answer::list(&[]));
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    calls.push(mark("7", &private).answer(Answer::error(409, "Conflict")));
    calls.push(Expect::get(ONE).answer(Answer::ok(&cluster("9", &json!({})))));
    let path = format!("{NAMESPACES}/clusters-one");
    calls.push(Expect::get(&path).answer(Answer::ok(&namespace("clusters/one"))));
    calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[machine()])));
    calls.push(mark("9", &legacy()).answer(Answer::ok(&cluster("10", &legacy()))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn a_cluster_that_goes_meanwhile_is_no_error() {
    let mut calls = survey(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
    calls.push(mark("7", &legacy()).answer(Answer::error(404, "NotFound")));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn what_is_marked_is_not_written_again() {
    let calls = survey(&[cluster("7", &legacy())], Answer::list(&[machine()]));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
}

#[tokio::test]
async fn o02_the_other_operators_mark_nothing() {
    for scope in [Scope::Legacy, Scope::All] {
        let calls = survey(&[cluster("7", &json!({}))], Answer::list(&[machine()]));
        let scenario = Scenario::new(calls);
        scan(&context(scope, &scenario)).await.unwrap();
        scenario.finish();
    }
}

#[tokio::test]
async fn o01_what_the_scan_has_seen_is_believed_only_where_the_marks_say_the_same() {
    let crd = || crds(&["machines.cluster.x-k8s.io"]);
    let looked = || Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[machine()]));
    let mut calls = survey(&[cluster("7", &legacy())], Answer::list(&[machine()]));
    calls.extend([looked(), looked(), crd()]);
    calls.extend(group());
    calls.extend([looked(), crd()]);
    calls.extend(group());
    calls.push(Expect::get(MACHINES).answer(Answer::error(403, "Forbidden")));
    calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::error(403, "Forbidden")));
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    scan(&ctx).await.unwrap();
    let namespace = found().await;
    let of = async |expected| ctx.evidence.of_annotated(&namespace, expected).await;
    // Nothing is asked.
    assert_eq!(
        of(Some(Side::Standard)).await.unwrap(),
        ObservedGroups::Standard
    );
    assert_eq!(
        of(Some(Side::Private)).await.unwrap(),
        ObservedGroups::Standard
    );
    assert_eq!(of(None).await.unwrap(), ObservedGroups::Standard);
    ctx.evidence.invalidate();
    assert_eq!(
        of(Some(Side::Standard)).await.unwrap(),
        ObservedGroups::Standard
    );
    // Whoever may not look any more knows nothing any more.
    ctx.evidence.everywhere().await.unwrap_err();
    of(Some(Side::Standard)).await.unwrap_err();
    scenario.finish();
}

#[tokio::test]
async fn o01_that_there_was_nothing_is_believed_of_a_marked_cluster_only() {
    let crd = || crds(&["machines.cluster.x-k8s.io"]);
    let looked = || Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[]));
    let mut calls = vec![crd()];
    calls.extend(group());
    calls.extend([looked(), looked()]);
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    let namespace = found().await;
    let of = async |expected| ctx.evidence.of_annotated(&namespace, expected).await;
    assert_eq!(of(None).await.unwrap(), ObservedGroups::None);
    // Nothing is asked.
    assert_eq!(of(Some(Side::Private)).await.unwrap(), ObservedGroups::None);
    assert_eq!(
        of(Some(Side::Standard)).await.unwrap(),
        ObservedGroups::None
    );
    assert_eq!(of(None).await.unwrap(), ObservedGroups::None);
    scenario.finish();
}

/// T01: objects in a namespace of another cluster say nothing about this one.
#[tokio::test]
async fn objects_of_another_cluster_are_not_observed() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let clusters = [cluster("7", &json!({}))];
    let mut calls = seen(&clusters, Answer::list(&[machine()]), true);
    calls.push(namespaces("clusters-x/one"));
    calls.push(mark("7", &private).answer(Answer::ok(&cluster("8", &private))));
    let scenario = Scenario::new(calls);
    scan(&context(Scope::Private, &scenario)).await.unwrap();
    scenario.finish();
    let foreign = Namespace::Foreign {
        name: "clusters-one".to_owned(),
        owner: "clusters-x/one".to_owned(),
    };
    // Nothing is asked.
    let scenario = Scenario::new([]);
    let ctx = context(Scope::Private, &scenario);
    assert_eq!(
        ctx.evidence.of(&foreign).await.unwrap(),
        ObservedGroups::None
    );
    let marked = ctx
        .evidence
        .of_annotated(&foreign, Some(Side::Standard))
        .await;
    assert_eq!(marked.unwrap(), ObservedGroups::None);
    scenario.finish();
}

/// T01: a lock that anybody can write is no migration of a cluster whose namespace is another one's.
#[tokio::test]
async fn a_forged_lock_is_not_surveyed_as_a_migration() {
    let locked = json!({
        "hypershift.openshift.io/scope": "legacy",
        "hypershift.openshift.io/migration-in-progress": "true",
    });
    for (owner, is_refused) in [("clusters/one", false), ("clusters-x/one", true)] {
        let clusters = [cluster("7", &locked)];
        let mut calls = seen(&clusters, Answer::list(&[machine()]), true);
        calls.push(namespaces(owner));
        let scenario = Scenario::new(calls);
        let ctx = context(Scope::Private, &scenario);
        let judged = survey::classify(&ctx).await.unwrap();
        scenario.finish();
        assert_eq!(judged[0].is_refused, is_refused, "{owner}");
        let is_locked = judged[0].verdict.owner == Owner::Migration;
        assert_eq!(is_locked, !is_refused, "{owner}");
    }
}

/// T14: whoever patches a cluster all the time does not hold up the others.
#[tokio::test]
async fn a_cluster_that_is_written_all_the_time_is_deferred() {
    let private = json!({ "hypershift.openshift.io/private-capi-types": "true" });
    let mut calls = survey(&[cluster("7", &json!({}))], Answer::list(&[]));
    let path = format!("{NAMESPACES}/clusters-one");
    for attempt in 0..ATTEMPTS {
        let version = (7 + attempt).to_string();
        let next = cluster(&(8 + attempt).to_string(), &json!({}));
        calls.push(mark(&version, &private).answer(Answer::error(409, "Conflict")));
        calls.push(Expect::get(ONE).answer(Answer::ok(&next)));
        calls.push(Expect::get(&path).answer(Answer::ok(&namespace("clusters/one"))));
        calls.push(Expect::get(MACHINES_OF_ONE).answer(Answer::list(&[])));
    }
    let scenario = Scenario::new(calls);
    let ctx = context(Scope::Private, &scenario);
    scan(&ctx).await.unwrap();
    scenario.finish();
    // Nothing was decided: the next look at all clusters has it reconciled.
    let id = crate::hosted_cluster::Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    };
    let decided = Evaluation {
        owner: Owner::New,
        annotation: None,
        invalid: None,
    };
    assert!(ctx.fleet.differs(&id, decided));
}
