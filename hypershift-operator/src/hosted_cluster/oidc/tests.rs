//! When documents are stored, and what is written then.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::facts::fixture;
use crate::metrics::Metrics;

const CLUSTER: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";

fn context(scenario: &Scenario) -> Context {
    let config = Config::for_tests(Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    Context::for_tests(&config, scenario.client(), releases, &metrics)
}

/// A cluster whose API server has a kubeconfig.
fn facts(platform: &str) -> Facts {
    let mut facts = fixture::facts(fixture::hosted_cluster(platform), CapiTypes::Private);
    let spec = crate::hosted_cluster::build::control_plane_spec(&facts);
    let mut control_plane = HostedControlPlane::new("one", spec);
    let kubeconfig = json!({ "name": "admin-kubeconfig", "key": "kubeconfig" });
    let status = json!({ "ready": true, "initialized": true, "kubeConfig": kubeconfig });
    control_plane.status = serde_json::from_value(status).unwrap();
    facts.control_plane = Some(control_plane);
    facts
}

#[test]
fn documents_are_stored_once_by_clusters_on_aws() {
    type Change = fn(&mut Facts);
    let table: [(&str, &str, Change, bool); 6] = [
        ("an API server", "aws", |_| {}, true),
        ("another platform", "none", |_| {}, false),
        (
            "no control plane",
            "aws",
            |it| it.control_plane = None,
            false,
        ),
        (
            "no API server yet",
            "aws",
            |it| it.control_plane.as_mut().unwrap().status = None,
            false,
        ),
        (
            "a key of the user",
            "aws",
            |it| {
                let key = json!({ "name": "key" });
                it.cluster.spec.service_account_signing_key = serde_json::from_value(key).unwrap();
            },
            false,
        ),
        (
            "stored",
            "aws",
            |it| {
                let finalizers = it.cluster.metadata.finalizers.get_or_insert_default();
                finalizers.push(FINALIZER.to_owned());
            },
            false,
        ),
    ];
    for (name, platform, change, expected) in table {
        let mut facts = facts(platform);
        change(&mut facts);
        assert_eq!(is_due(&facts), expected, "{name}");
    }
}

#[tokio::test]
async fn without_a_bucket_nothing_is_read_or_written() {
    let scenario = Scenario::new([]);
    let ctx = context(&scenario);
    let mut facts = facts("aws");
    ensure(&mut facts, &ctx).await.unwrap();
    assert_eq!(facts.oidc_documents, Some(OidcDocuments::Unconfigured));
    record(&facts, &ctx).await.unwrap();
    let finalizers = facts.cluster.metadata.finalizers.get_or_insert_default();
    finalizers.push(FINALIZER.to_owned());
    claim(&facts, &ctx).await.unwrap();
    scenario.finish();
    let (place, problem) = delete(&facts, &ctx).await.unwrap_err();
    assert_eq!(place, "one-x7k2p");
    assert!(
        problem.contains("removes finalizer hypershift.io/aws-oidc-discovery"),
        "{problem}"
    );
}

#[tokio::test]
async fn stored_documents_are_recorded_by_a_finalizer() {
    let mut facts = facts("aws");
    facts.oidc_documents = Some(OidcDocuments::Stored);
    let stored = serde_json::to_value(&facts.cluster).unwrap();
    let read = Expect::get(CLUSTER).answer(Answer::ok(&stored));
    let scenario = Scenario::new([
        read,
        Expect::patch(CLUSTER)
            .body(json!({ "metadata": {
                "namespace": "clusters",
                "name": "one",
                "uid": "7d3f1f5e-6f0a-4f4e-8f3d-5b1f2c9f0a11",
                "finalizers": [FINALIZER],
            }}))
            .answer(Answer::ok(&stored)),
    ]);
    record(&facts, &context(&scenario)).await.unwrap();
    scenario.finish();
}
