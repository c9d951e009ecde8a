//! Which clusters get a key, and which Secrets are used.

use api::group::CapiTypes;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::Value;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::facts::fixture;
use crate::metrics::Metrics;

const CLUSTER: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const SECRETS: &str = "/api/v1/namespaces/clusters/secrets";
const NAME: &str = "one-etcd-encryption-key";

fn context(scenario: &Scenario) -> Context {
    let config = Config::for_tests(Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    Context::for_tests(&config, scenario.client(), releases, &metrics)
}

/// A new cluster that does not say how Secrets are encrypted.
fn new_cluster(platform: &str) -> HostedCluster {
    let mut cluster = fixture::hosted_cluster(platform);
    cluster.spec.secret_encryption = None;
    cluster.status = None;
    cluster
}

/// What is done, if these calls are expected: whether the HostedCluster was changed, and why there is no key.
async fn ensured(calls: Vec<Expect>) -> (bool, Option<String>) {
    let scenario = Scenario::new(calls);
    let mut facts = fixture::facts(new_cluster("kubevirt"), CapiTypes::Private);
    let changed = ensure(&mut facts, &context(&scenario)).await.unwrap();
    scenario.finish();
    (changed, facts.no_encryption_key)
}

/// The calls that refer to the key.
fn referred() -> [Expect; 2] {
    let cluster = serde_json::to_value(new_cluster("kubevirt")).unwrap();
    let encryption = json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": NAME } } });
    [
        Expect::get(CLUSTER).answer(Answer::ok(&cluster)),
        Expect::patch(CLUSTER)
            .body(json!({ "spec": { "secretEncryption": encryption } }))
            .answer(Answer::ok(&cluster)),
    ]
}

#[test]
fn new_clusters_on_kubevirt_without_encryption_get_a_key() {
    assert!(is_due(&new_cluster("kubevirt")));
    for platform in ["aws", "agent", "none", "openstack"] {
        assert!(!is_due(&new_cluster(platform)), "{platform}");
    }
    let mut encrypted = new_cluster("kubevirt");
    let encryption = json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "own" } } });
    encrypted.spec.secret_encryption = serde_json::from_value(encryption).unwrap();
    assert!(!is_due(&encrypted));
    let mut old = new_cluster("kubevirt");
    let status = json!({ "version": {
        "desired": { "image": "", "version": "4.20.1" }, "observedGeneration": 1, "history": [],
    } });
    old.status = serde_json::from_value(status).unwrap();
    assert!(!is_due(&old), "etcd of an old cluster is not encrypted");
}

#[test]
fn each_key_is_random_and_deleted_with_the_cluster() {
    let cluster = new_cluster("kubevirt");
    let id = Id::of(&cluster.metadata);
    let [one, two] = [(), ()].map(|()| secret(&cluster, &id, NAME).unwrap());
    assert!(is_own(&one, &cluster));
    assert_eq!(one.data.as_ref().unwrap()[KEY].0.len(), 32);
    assert_ne!(one.data, two.data);
    let owners = one.metadata.owner_references.unwrap();
    assert_eq!(Some(&owners[0].uid), cluster.metadata.uid.as_ref());
}

#[tokio::test]
async fn a_key_is_created_before_the_cluster_refers_to_it() {
    let mut calls =
        vec![Expect::post(SECRETS).body(
            json!({ "metadata": { "namespace": "clusters", "name": NAME }, "type": "Opaque" }),
        )];
    calls.extend(referred());
    assert_eq!(ensured(calls).await, (true, None));
}

#[tokio::test]
async fn an_existing_secret_is_used_only_if_it_is_of_the_cluster() {
    let cluster = new_cluster("kubevirt");
    let uid = cluster.metadata.uid.clone().unwrap();
    let owner = |uid: &str| json!([{ "apiVersion": "v1", "kind": "a", "name": "one", "uid": uid }]);
    let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let labels = |infra_id: &str| json!({ CREATED_FOR: infra_id });
    for (owners, labels, key, is_used) in [
        (owner(&uid), Value::Null, key, true),
        (Value::Null, labels("one-x7k2p"), key, true),
        (owner("other"), Value::Null, key, false),
        (Value::Null, labels("other"), key, false),
        (Value::Null, Value::Null, key, false),
        (owner(&uid), Value::Null, "Bwc=", false),
    ] {
        let found = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "namespace": "clusters", "name": NAME, "ownerReferences": owners, "labels": labels,
            },
            "data": { "key": key },
        });
        let mut calls = vec![
            Expect::post(SECRETS).answer(Answer::error(409, "AlreadyExists")),
            Expect::get(&format!("{SECRETS}/{NAME}")).answer(Answer::ok(&found)),
        ];
        if is_used {
            calls.extend(referred());
        }
        let (changed, problem) = ensured(calls).await;
        assert_eq!(changed, is_used, "{found}");
        match problem {
            None => assert!(is_used, "{found}"),
            Some(problem) => assert!(problem.contains("set spec.secretEncryption"), "{problem}"),
        }
    }
}
