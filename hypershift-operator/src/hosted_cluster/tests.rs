//! Names that other systems depend on.

use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::Value;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::metrics::Metrics;

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
fn the_log_message_is_the_one_that_alerts_look_for() {
    assert_eq!(INVALID_STATE, "Invalid annotation state detected");
}

#[test]
fn what_is_left_of_a_slim_cluster_is_its_own_condition() {
    let cluster = json!({
        "metadata": { "name": "one", "managedFields": [{ "manager": "m" }] },
        "spec": { "release": "x" },
        "status": { "conditions": [{ "type": "Available" }, { "type": "PrivateCAPITypes", "status": "True" }] },
    });
    let slim = slim(serde_json::from_value(cluster).unwrap());
    assert_eq!(slim.metadata.managed_fields, None);
    let expected =
        json!({ "status": { "conditions": [{ "type": "PrivateCAPITypes", "status": "True" }] } });
    assert_eq!(slim.data, expected);
}

#[test]
fn a_condition_that_another_operator_has_overwritten_is_due_again() {
    let verdict = Evaluation {
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
        verdict,
    )
    .unwrap();
    let object = own.object(None);
    let text = |field: &str| {
        object["status"]["conditions"][0][field]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let told = cluster(&text("status"), &text("reason"), &text("message"));
    assert_eq!(due(Scope::Private, &told, verdict), None);
    assert_eq!(due(Scope::Legacy, &told, verdict), None);
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

/// A cluster whose condition about its types says already what it should, so that only what is new is written.
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

async fn reconciled(scope: Scope, cluster: &Value, calls: Vec<Expect>, reads: Vec<Expect>) {
    let scenario = Scenario::new(calls).always(reads);
    let ctx = context(scope, &scenario);
    let found = serde_json::from_value(json!({ "metadata": cluster["metadata"] })).unwrap();
    reconcile(Arc::new(found), ctx).await.unwrap();
    scenario.finish();
}

/// T01: a cluster whose namespace is another one's gets no finalizer, and a condition that says whose it is.
#[tokio::test]
async fn a_refused_cluster_gets_a_condition_and_nothing_else() {
    let private = json!({ PRIVATE_CAPI_TYPES: "true" });
    let legacy = json!({ SCOPE: "legacy" });
    // A lock that somebody has forged is neither honoured nor acknowledged.
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
        let told = "Control plane namespace clusters-one belongs to HostedCluster clusters-x/one. Rename this HostedCluster.";
        let mut calls = vec![
            Expect::get(ONE).answer(Answer::ok(&cluster)),
            Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
        ];
        if scope != Scope::All {
            // Whose it is.
            calls.push(Expect::patch(&format!("{ONE}/status")).answer(Answer::ok(&cluster)));
        }
        calls.extend([
            Expect::get(ONE).answer(Answer::ok(&cluster)),
            Expect::patch(&format!("{ONE}/status"))
                .body(json!({ "status": { "conditions": [{
                    "type": "ValidConfiguration",
                    "status": "False",
                    "reason": "InvalidConfiguration",
                    "message": told,
                }] } }))
                .answer(Answer::ok(&cluster)),
        ]);
        reconciled(scope, &cluster, calls, Vec::new()).await;
    }
}

/// T01: the other operator leaves a refused cluster alone, locked or not.
#[tokio::test]
async fn a_refused_cluster_of_the_other_operator_is_skipped() {
    let locked = json!({ SCOPE: "legacy", MIGRATION_IN_PROGRESS: "true" });
    let cluster = cluster(&locked, false);
    let calls = vec![
        Expect::get(ONE).answer(Answer::ok(&cluster)),
        Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
    ];
    reconciled(Scope::Private, &cluster, calls, Vec::new()).await;
}

/// T01: one that has the finalizer, from before it was refused, loses it at once.
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
    let capi = crate::capi::Capi::new(api::group::Side::Private).cluster();
    let list = |path: &str| Expect::get(path).answer(Answer::list(std::slice::from_ref(&theirs)));
    let get = |path: &str| Expect::get(path).answer(Answer::ok(&theirs));
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
        Expect::get(NAMESPACE).answer(owned_by(Some("clusters-x/one"))),
    ];
    reconciled(Scope::Private, &cluster, calls, reads).await;
}
