//! Reconciles of HostedClusters against a mock API server, and names that other systems depend on.

use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::capi::Capi;
use crate::config::Config;
use crate::facts::fixture;
use crate::metrics::Metrics;
use crate::names;
use crate::owner_condition::{due, trim};

#[test]
fn the_namespace_of_a_control_plane_has_no_dots() {
    let id = Id {
        namespace: "clusters".to_owned(),
        name: "a.example.com".to_owned(),
    };
    assert_eq!(id.control_plane_namespace(), "clusters-a-example-com");
    assert_eq!(id.to_string(), "clusters/a.example.com");
}

#[test]
fn alerts_match_the_log_message_of_invalid_states() {
    assert_eq!(INVALID_STATE, "Invalid annotation state detected");
}

#[test]
fn a_trimmed_cluster_keeps_only_its_own_condition() {
    let cluster = json!({
        "metadata": { "name": "one", "managedFields": [{ "manager": "m" }] },
        "spec": { "release": "x" },
        "status": { "conditions": [{ "type": "Available" }, { "type": "PrivateCAPITypes", "status": "True" }] },
    });
    let slim = trim(serde_json::from_value(cluster).unwrap());
    assert_eq!(slim.metadata.managed_fields, None);
    let expected =
        json!({ "status": { "conditions": [{ "type": "PrivateCAPITypes", "status": "True" }] } });
    assert_eq!(slim.data, expected);
}

#[test]
fn an_overwritten_owner_condition_is_due_again() {
    let evaluation = Evaluation {
        owner: ownership::Owner::New,
        annotation: None,
        invalid: None,
    };
    let cluster = |status: &str, reason: &str, message: &str| {
        let condition = json!({ "type": "PrivateCAPITypes", "status": status, "reason": reason, "message": message });
        serde_json::from_value(json!({ "metadata": {}, "status": { "conditions": [condition] } }))
            .unwrap()
    };
    let own = due(
        Scope::Private,
        &cluster("False", "LegacyTypes", ""),
        evaluation,
    )
    .unwrap();
    let object = own.object(None);
    let text = |field: &str| {
        object["status"]["conditions"][0][field]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let reported = cluster(&text("status"), &text("reason"), &text("message"));
    assert_eq!(due(Scope::Private, &reported, evaluation), None);
    assert_eq!(due(Scope::Legacy, &reported, evaluation), None);
}

const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const NAMESPACE: &str = "/api/v1/namespaces/clusters-one";

fn context(scope: Scope, scenario: &Scenario) -> Arc<Context> {
    let config = Config::for_tests(scope);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    Arc::new(Context::for_tests(
        &config,
        scenario.client(),
        releases,
        &metrics,
    ))
}

/// A cluster whose condition about its types is up to date, so that only other changes are written.
fn cluster(annotations: &Value, is_deleted: bool) -> Value {
    let mut cluster = serde_json::to_value(fixture::hosted_cluster("none")).unwrap();
    cluster["metadata"]["annotations"] = annotations.clone();
    cluster["metadata"]["resourceVersion"] = json!("7");
    if is_deleted {
        cluster["metadata"]["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
    } else {
        cluster["metadata"]["finalizers"] = json!([]);
    }
    cluster
}

fn owned_by(owner: Option<&str>) -> Answer {
    let annotations = owner.map(|owner| json!({ names::CLUSTER: owner }));
    Answer::ok(&json!({ "metadata": {
        "name": "clusters-one", "uid": "ns", "annotations": annotations,
    } }))
}

fn one() -> Id {
    Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    }
}

async fn reconciled(scope: Scope, calls: Vec<Expect>, reads: Vec<Expect>) {
    let scenario = Scenario::new(calls).always(reads);
    let ctx = context(scope, &scenario);
    reconcile(one(), ctx).await.unwrap();
    scenario.finish();
}

/// Check T01: a HostedCluster whose namespace belongs to another one gets no finalizer, and a condition with the owner.
#[tokio::test]
async fn a_refused_cluster_gets_a_condition_and_nothing_else() {
    let private = json!({ PRIVATE_CAPI_TYPES: "true" });
    let legacy = json!({ SCOPE: "legacy" });
    // A forged lock is neither honored nor acknowledged.
    let locked = json!({ SCOPE: "legacy", MIGRATION_IN_PROGRESS: "true" });
    let both = json!({ PRIVATE_CAPI_TYPES: "true", MIGRATION_IN_PROGRESS: "true" });
    for (scope, annotations) in [
        (Scope::Private, &private),
        (Scope::Private, &both),
        (Scope::Legacy, &legacy),
        (Scope::Legacy, &locked),
        (Scope::All, &legacy),
    ] {
        let cluster = cluster(annotations, false);
        let message = "Control plane namespace clusters-one belongs to HostedCluster clusters-x/one. Rename this HostedCluster.";
        let mut calls = vec![
            Expect::get(ONE).answer(Answer::ok(&cluster)),
            Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
        ];
        if scope != Scope::All {
            // The condition about its owner.
            calls.push(Expect::patch(&format!("{ONE}/status")).answer(Answer::ok(&cluster)));
        }
        calls.extend([
            Expect::get(ONE).answer(Answer::ok(&cluster)),
            Expect::patch(&format!("{ONE}/status"))
                .body(json!({ "status": { "conditions": [{
                    "type": "ValidConfiguration",
                    "status": "False",
                    "reason": "InvalidConfiguration",
                    "message": message,
                }] } }))
                .answer(Answer::ok(&cluster)),
        ]);
        reconciled(scope, calls, Vec::new()).await;
    }
}

/// Check T01: the other operator skips a refused HostedCluster, locked or not.
#[tokio::test]
async fn a_refused_cluster_of_the_other_operator_is_skipped() {
    let locked = json!({ SCOPE: "legacy", MIGRATION_IN_PROGRESS: "true" });
    let cluster = cluster(&locked, false);
    let calls = vec![
        Expect::get(ONE).answer(Answer::ok(&cluster)),
        Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
    ];
    reconciled(Scope::Private, calls, Vec::new()).await;
}

/// Check T01: a finalizer from before the HostedCluster was refused is removed at once.
#[tokio::test]
async fn a_refused_cluster_can_be_deleted_at_once() {
    let private = json!({
        PRIVATE_CAPI_TYPES: "true",
        "hypershift.openshift.io/hcp-cluster-deletion-grace-period": "1h",
    });
    let cluster = cluster(&private, true);
    let calls = vec![
        Expect::get(ONE).answer(Answer::ok(&cluster)),
        Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
        Expect::patch(&format!("{ONE}/status")).answer(Answer::ok(&cluster)),
        Expect::patch(ONE)
            .body(json!({ "metadata": { "finalizers": [] } }))
            .answer(Answer::ok(&cluster)),
    ];
    let theirs = json!({ "metadata": {
        "namespace": "clusters-one", "name": "theirs", "uid": "u", "annotations": { names::CLUSTER: "clusters-x/one" },
        "finalizers": ["hypershift.openshift.io/component-finalizer"],
    }, "spec": { "paused": true } });
    let hypershift = "/apis/hypershift.openshift.io/v1beta1/namespaces";
    let capi = crate::capi::Capi::new(api::group::CapiTypes::Private).cluster();
    let list = |path: &str| Expect::get(path).answer(Answer::list(std::slice::from_ref(&theirs)));
    let get = |path: &str| Expect::get(path).answer(Answer::ok(&theirs));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let reads = vec![
        Expect::get(&format!("{hypershift}/clusters/nodepools")).answer(Answer::list(&[])),
        list(&format!(
            "/apis/{}/namespaces/clusters-one/clusters",
            capi.api_version
        )),
        list(&format!("{hypershift}/clusters-one/awsendpointservices")),
        get(&format!(
            "{hypershift}/clusters-one/hostedcontrolplanes/one"
        )),
        get("/apis/apps/v1/namespaces/clusters-one/deployments/cluster-api"),
        get("/apis/apps/v1/namespaces/clusters-one/deployments/capi-provider"),
        get(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-cluster-api-clusters-one",
        ),
        get(&format!(
            "{rbac}/clusterrolebindings/hypershift-control-plane-pki-operator-clusters-one"
        )),
        get(&format!(
            "{rbac}/clusterrolebindings/hypershift-csr-approver-clusters-one"
        )),
        get(&format!(
            "{rbac}/clusterrolebindings/hypershift-csr-signer-clusters-one"
        )),
        get(&format!(
            "{rbac}/clusterroles/hypershift-csr-approver-clusters-one"
        )),
        get(&format!(
            "{rbac}/clusterroles/hypershift-csr-signer-clusters-one"
        )),
        Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
    ];
    reconciled(Scope::Private, calls, reads).await;
}

fn watched(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

fn secret(namespace: &str, name: &str) -> DynamicObject {
    watched(
        &json!({ "metadata": { "namespace": namespace, "name": name, "resourceVersion": "1" } }),
    )
}

#[tokio::test]
async fn an_unchanged_cluster_is_reconciled_without_requests() {
    let cluster = cluster(&json!({ PRIVATE_CAPI_TYPES: "true" }), false);
    let mut updated = cluster.clone();
    updated["metadata"]["resourceVersion"] = json!("8");
    let scenario = Scenario::new([])
        .always([
            Expect::get(ONE).answer(Answer::ok(&cluster)),
            Expect::get(NAMESPACE).answer(owned_by(Some("clusters/one"))),
            Expect::get("/apis").answer(Answer::ok(&json!({ "groups": [] }))),
            Expect::patch(&format!("{ONE}/status")).answer(Answer::ok(&updated)),
        ])
        .lenient();
    let ctx = context(Scope::Private, &scenario);
    let known = watched(&cluster);
    ctx.cache.sync(&[(cache::HOSTED_CLUSTERS, &known)]);
    let requests = async || {
        let before = scenario.seen().len();
        let action = reconcile(one(), Arc::clone(&ctx)).await.unwrap();
        assert!(action.requeue_after().is_some(), "it is requeued");
        scenario.seen().len() - before
    };
    let see = |watch: &str, object: &DynamicObject| {
        let event = kube::runtime::watcher::Event::Apply(object.clone());
        ctx.cache.see(watch, &Ok(event));
    };
    assert!(requests().await > 10, "it is new: {:?}", scenario.seen());
    see(cache::HOSTED_CLUSTERS, &watched(&updated));
    assert_eq!(requests().await, 0, "its own status is no change");
    see(cache::SECRETS, &secret("clusters-two", "theirs"));
    see(cache::SECRETS, &secret("clusters", "other"));
    see(cache::SECRETS, &secret("clusters-one", "of-a-pool"));
    assert_eq!(requests().await, 0, "others have changed");
    let mut owned = secret("clusters-one", "new");
    owned.metadata.annotations =
        Some([(names::CLUSTER.to_owned(), "clusters/one".to_owned())].into());
    let mut newer = known.clone();
    newer.metadata.resource_version = Some("9".to_owned());
    for (watch, object) in [
        (cache::SECRETS, secret("clusters", "pull")),
        (cache::SECRETS, owned),
        (cache::HOSTED_CLUSTERS, newer),
    ] {
        see(watch, &object);
        assert!(requests().await > 10, "{:?}", object.metadata.name);
        see(cache::HOSTED_CLUSTERS, &watched(&updated));
        assert_eq!(requests().await, 0);
    }
    // Another operator has detected that its owner has changed.
    ctx.cache.clusters.forget(&cache::key(&one()));
    assert!(requests().await > 10);
    // While a watch has failed, nothing counts as unchanged.
    let forbidden = kube::core::Status::failure("", "").with_code(403);
    let forbidden = kube::Error::Api(Box::new(forbidden));
    let failed = kube::runtime::watcher::Error::WatchStartFailed(forbidden);
    ctx.cache.see::<DynamicObject>(cache::SECRETS, &Err(failed));
    assert!(requests().await > 10, "a watch has failed");
    assert!(requests().await > 10, "and still has");
    scenario.finish();
}

#[tokio::test]
async fn missing_crds_are_found_without_a_request() {
    let groups = Answer::ok(&json!({ "groups": [] }));
    let scenario = Scenario::new([])
        .always([Expect::get("/apis").answer(groups)])
        .lenient();
    let ctx = context(Scope::Private, &scenario);
    let missing = async || {
        let cluster = fixture::hosted_cluster("aws");
        let capi = Capi::new(api::group::CapiTypes::Private);
        let read = dereference::dereference(cluster, capi, &ctx.releases, None, &ctx);
        read.await.unwrap().0.missing_crds
    };
    assert_eq!(missing().await, [""; 0], "no watch is in sync");
    ctx.cache.sync(&[]);
    let found = missing().await;
    assert!(found[0].starts_with("clusters."), "{found:?}");
    assert!(found[7].starts_with("awsmachines."), "{found:?}");
    let seen = scenario.seen();
    let is_list = |call: &String| call.contains("customresourcedefinitions");
    assert!(!seen.iter().any(is_list), "{seen:?}");
    scenario.finish();
}

/// Check T01: watches lag behind, so the owner of the namespace is read before the first write.
#[tokio::test]
async fn the_namespace_owner_is_read_before_the_first_write() {
    for (owner, is_written) in [("clusters/one", true), ("clusters-x/one", false)] {
        let scenario = Scenario::new([])
            .always([Expect::get(NAMESPACE).answer(owned_by(Some(owner)))])
            .lenient();
        let ctx = context(Scope::Private, &scenario);
        let namespace = json!({ "metadata": {
            "namespace": "clusters-one",
            "name": "clusters-one",
            "annotations": { names::CLUSTER: "clusters/one" },
        } });
        ctx.cache.sync(&[(cache::NAMESPACES, &watched(&namespace))]);
        let facts = fixture::facts(
            fixture::hosted_cluster("none"),
            api::group::CapiTypes::Private,
        );
        let written = pipeline::written(&facts, &ctx).await;
        assert_eq!(written.is_ok(), is_written, "{owner}");
        let seen = scenario.seen();
        let inside = |call: &String| !call.starts_with("GET") && call.contains("clusters-one/");
        let first = seen.iter().position(inside);
        assert_eq!(first.is_some(), is_written, "{owner}: {seen:?}");
        let read = format!("GET {NAMESPACE}");
        let read = seen.iter().position(|call| *call == read);
        assert!(read.is_some_and(|at| first.is_none_or(|first| at < first)));
        scenario.finish();
    }
}
