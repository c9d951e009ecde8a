//! The order of a deletion, call by call, before an API server of expected calls.

use api::group::CapiTypes;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::capi::Capi;
use crate::config::Config;
use crate::control_plane_namespace;
use crate::facts::fixture;
use crate::hosted_cluster::dereference::empty_facts;
use crate::metrics::Metrics;

const POOLS: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools";
const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const LINKS: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/awsendpointservices";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/clusters-one/deployments";
const BINDING: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-cluster-api-clusters-one";
/// Binding and roles of the PKI operator.
const PKI_BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-control-plane-pki-operator-clusters-one";
const APPROVER: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-csr-approver-clusters-one";
const SIGNER: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hypershift-csr-signer-clusters-one";
const APPROVER_ROLE: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/hypershift-csr-approver-clusters-one";
const SIGNER_ROLE: &str =
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/hypershift-csr-signer-clusters-one";
const NAMESPACE: &str = "/api/v1/namespaces/clusters-one";

fn context(scenario: &Scenario) -> Context {
    let config = Config::for_tests(Scope::Private);
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    Context::for_tests(&config, scenario.client(), releases, &metrics)
}

async fn advance(scenario: &Scenario) -> Progress {
    let own = Namespace::Owned(control_plane_namespace::for_tests("clusters-one"));
    advance_in(&own, scenario).await
}

async fn advance_in(namespace: &Namespace, scenario: &Scenario) -> Progress {
    let ctx = context(scenario);
    let cluster = fixture::hosted_cluster("none");
    let facts = empty_facts(cluster, Capi::new(CapiTypes::Private), &ctx);
    super::advance(&facts, namespace, &ctx).await.unwrap()
}

/// The path of a kind of Cluster API.
fn capi(plural: &str) -> String {
    let resource = Capi::new(CapiTypes::Private).cluster();
    format!(
        "/apis/{}/namespaces/clusters-one/{plural}",
        resource.api_version
    )
}

fn none(path: &str) -> Expect {
    Expect::get(path).answer(Answer::list(&[]))
}

fn gone(path: &str) -> Expect {
    Expect::get(path).answer(Answer::error(404, "NotFound"))
}

/// What is looked for once there are no machines any more, and does not exist.
fn nothing_left() -> impl Iterator<Item = Expect> {
    nothing_left_with(LINKS)
}

/// The same on a platform whose private links are of another kind.
fn nothing_left_with(links: &str) -> impl Iterator<Item = Expect> + use<> {
    let deployments = ["cluster-api", "capi-provider"];
    let deployments = deployments.map(|name| gone(&format!("{DEPLOYMENTS}/{name}")));
    let rest = [
        BINDING,
        PKI_BINDING,
        APPROVER,
        SIGNER,
        APPROVER_ROLE,
        SIGNER_ROLE,
        links,
        HCP,
        NAMESPACE,
    ];
    deployments.into_iter().chain(rest.map(gone))
}

fn object(name: &str, finalizers: &[&str], rest: Value) -> Value {
    let mut object = rest;
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["resourceVersion"] = json!("7");
    object["metadata"]["finalizers"] = json!(finalizers);
    object
}

#[tokio::test]
async fn deletion_waits_for_node_pools_before_anything_else() {
    let pool = object(
        "workers",
        &["hypershift.openshift.io/finalizer"],
        json!({ "metadata": { "namespace": "clusters" }, "spec": { "clusterName": "one" } }),
    );
    let other = object("others", &[], json!({ "spec": { "clusterName": "two" } }));
    let machine = object("m-1", &["machine.example.com"], json!({}));
    let pool_path = format!("{POOLS}/workers");
    let available = json!({ "metadata": {}, "status": { "availableReplicas": 1 } });
    let scenario = Scenario::new([
        none(&capi("clusters")),
        gone(HCP),
        Expect::get(POOLS).answer(Answer::list(&[other, pool.clone()])),
        Expect::delete(&pool_path)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&pool)),
        Expect::get(&capi("machines")).answer(Answer::list(&[machine])),
        Expect::get(&format!("{DEPLOYMENTS}/cluster-api")).answer(Answer::ok(&available)),
        gone(&format!("{DEPLOYMENTS}/capi-provider")),
    ]);
    let Progress::Waiting(waiting) = advance(&scenario).await else {
        unreachable!("there is a pool");
    };
    scenario.finish();
    let message = waiting.message();
    for part in [
        "NodePool workers",
        "hypershift.openshift.io/finalizer",
        "1 Machines remain; m-1 has finalizers machine.example.com",
        "Deployment capi-provider, which removes it, does not exist",
    ] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

/// Without an API server, no controller finds the machines of Karpenter, and the control plane would stay forever.
#[tokio::test]
async fn the_finalizer_of_karpenter_is_removed_without_an_api_server() {
    let available = json!({ "metadata": {}, "status": {
        "conditions": [{ "type": "Available", "status": "True" }],
    } });
    let server = format!("{DEPLOYMENTS}/kube-apiserver");
    for (answer, is_released) in [
        (Answer::error(404, "NotFound"), true),
        (Answer::ok(&json!({ "metadata": {} })), true),
        (Answer::ok(&available), false),
    ] {
        let control_plane = object(
            "one",
            &[names::KARPENTER_FINALIZER, "example.com/other"],
            json!({ "metadata": { "namespace": "clusters-one" }, "spec": {} }),
        );
        let pool =
            json!({ "metadata": { "namespace": "clusters" }, "spec": { "clusterName": "one" } });
        let mut pool = object("workers", &[], pool);
        pool["metadata"]["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
        let read = || Expect::get(HCP).answer(Answer::ok(&control_plane));
        let mut calls = vec![
            none(&capi("clusters")),
            read(),
            read(),
            Expect::get(&server).answer(answer),
        ];
        if is_released {
            let kept = json!({ "metadata": { "finalizers": ["example.com/other"] } });
            let patch = Expect::patch(HCP).body(kept);
            calls.push(patch.answer(Answer::ok(&control_plane)));
        }
        calls.extend([
            Expect::get(POOLS).answer(Answer::list(&[pool])),
            none(&capi("machines")),
            gone(&format!("{DEPLOYMENTS}/cluster-api")),
            gone(&format!("{DEPLOYMENTS}/capi-provider")),
        ]);
        let scenario = Scenario::new(calls);
        let ctx = context(&scenario);
        let mut cluster = fixture::hosted_cluster("aws");
        fixture::with_auto_node(&mut cluster);
        let facts = empty_facts(cluster, Capi::new(CapiTypes::Private), &ctx);
        let own = Namespace::Owned(control_plane_namespace::for_tests("clusters-one"));
        let progress = super::advance(&facts, &own, &ctx).await.unwrap();
        assert!(matches!(progress, Progress::Waiting(_)), "{progress:?}");
        scenario.finish();
    }
}

#[tokio::test]
async fn deletion_removes_the_control_plane_and_namespace_last() {
    let kept = object(
        "cluster-api",
        &[names::COMPONENT_FINALIZER, "example.com/other"],
        json!({ "metadata": { "namespace": "clusters-one" } }),
    );
    let deployment = format!("{DEPLOYMENTS}/cluster-api");
    let ours = object(
        "clusters-one",
        &[],
        json!({ "metadata": { "annotations": { names::CLUSTER: "clusters/one" } } }),
    );
    let terminating = json!({ "metadata": {}, "status": { "conditions": [
        { "type": "NamespaceContentRemaining", "status": "True", "message": "pods remain" },
    ]}});
    let scenario = Scenario::new([
        none(&capi("clusters")),
        gone(HCP),
        none(POOLS),
        none(&capi("clusters")),
        Expect::get(&deployment).answer(Answer::ok(&kept)),
        Expect::patch(&deployment)
            .body(json!({ "metadata": { "resourceVersion": "7", "finalizers": ["example.com/other"] } }))
            .answer(Answer::ok(&kept)),
        gone(&format!("{DEPLOYMENTS}/capi-provider")),
        gone(BINDING),
        gone(PKI_BINDING),
        gone(APPROVER),
        gone(SIGNER),
        gone(APPROVER_ROLE),
        gone(SIGNER_ROLE),
        none(LINKS),
        gone(HCP),
        Expect::get(NAMESPACE).answer(Answer::ok(&ours)),
        Expect::delete(NAMESPACE)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&ours)),
        Expect::get(NAMESPACE).answer(Answer::ok(&terminating)),
    ]);
    let Progress::Waiting(waiting) = advance(&scenario).await else {
        unreachable!("the namespace is there");
    };
    scenario.finish();
    assert!(
        waiting.message().contains("pods remain"),
        "{}",
        waiting.message()
    );
}

#[tokio::test]
async fn a_cluster_without_objects_is_deleted_at_once() {
    let calls = [
        gone(&capi("clusters")),
        gone(HCP),
        none(POOLS),
        gone(&capi("clusters")),
    ];
    let scenario = Scenario::new(calls.into_iter().chain(nothing_left()));
    let absent = Namespace::Absent("clusters-one".to_owned());
    let progress = advance_in(&absent, &scenario).await;
    assert_eq!(progress, Progress::Gone(Duration::ZERO));
    scenario.finish();
}

/// On Azure: the managed identity was revoked before the cluster was deleted.
#[tokio::test]
async fn machines_that_their_provider_fails_to_delete_are_given_up() {
    let finalizer = "azuremachine.infrastructure.cluster.x-k8s.io";
    let machine = |name: &str, reason: &str| {
        let condition = json!({ "type": "Ready", "status": "False", "reason": reason });
        let rest = json!({
            "metadata": { "namespace": "clusters-one", "deletionTimestamp": "2020-01-31T12:00:00Z" },
            "status": { "conditions": [condition] },
        });
        object(name, &[finalizer, "example.com/other"], rest)
    };
    let failed = machine("failed", "DeletionFailed");
    let machines = format!(
        "/apis/{}/v1beta1/namespaces/clusters-one/azuremachines",
        api::group::infrastructure(CapiTypes::Private)
    );
    let links = LINKS.replace("awsendpointservices", "azureprivatelinkservices");
    let calls = [
        none(&capi("clusters")),
        gone(HCP),
        Expect::get(&machines).answer(Answer::list(&[machine("slow", "Deleting"), failed.clone()])),
        Expect::patch(&format!("{machines}/failed"))
            .body(json!({ "metadata": { "resourceVersion": "7", "finalizers": ["example.com/other"] } }))
            .answer(Answer::ok(&failed)),
        none(POOLS),
        none(&capi("clusters")),
    ];
    let scenario = Scenario::new(calls.into_iter().chain(nothing_left_with(&links)));
    let ctx = context(&scenario);
    let cluster = fixture::hosted_cluster("azure");
    let mut facts = empty_facts(cluster, Capi::new(CapiTypes::Private), &ctx);
    fixture::manage_identities(&mut facts);
    let own = Namespace::Owned(control_plane_namespace::for_tests("clusters-one"));
    let progress = super::advance(&facts, &own, &ctx).await.unwrap();
    assert_eq!(progress, Progress::Gone(Duration::ZERO));
    scenario.finish();
}

/// Check O05. On OpenStack, the controllers of images end with the Secrets: one with their finalizer would hold the namespace
/// forever. While there is an image, they need the credentials.
#[tokio::test]
async fn secrets_are_released_after_the_last_image() {
    let finalizer = "openstack.k-orc.cloud/image";
    let images = "/apis/openstack.k-orc.cloud/v1alpha1/namespaces/clusters-one/images";
    let servers = format!(
        "/apis/{}/v1alpha1/namespaces/clusters-one/openstackservers",
        api::group::infrastructure(CapiTypes::Private)
    );
    let secrets = format!("{NAMESPACE}/secrets");
    let own = |name: &str, finalizers: &[&str]| {
        let rest = json!({ "metadata": { "namespace": "clusters-one" } });
        object(name, finalizers, rest)
    };
    let begin = || [none(&capi("clusters")), gone(HCP), none(POOLS)];
    let mut image = own("rhcos-1", &[finalizer]);
    image["metadata"]["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
    let held = [
        Expect::get(images).answer(Answer::list(&[image])),
        gone(&format!("{DEPLOYMENTS}/capi-provider")),
    ];
    let guarded = own("one-cloud", &[finalizer, "example.com/other"]);
    let kept =
        json!({ "metadata": { "resourceVersion": "7", "finalizers": ["example.com/other"] } });
    let released = [
        none(images),
        none(&servers),
        Expect::get(&secrets).answer(Answer::list(&[own("pull-secret", &[]), guarded.clone()])),
        Expect::patch(&format!("{secrets}/one-cloud"))
            .body(kept)
            .answer(Answer::ok(&guarded)),
        none(&capi("clusters")),
    ];
    let rest = released.into_iter().chain(nothing_left());
    let waits: Vec<_> = begin().into_iter().chain(held).collect();
    let goes_on: Vec<_> = begin().into_iter().chain(rest).collect();
    for (calls, expected) in [(waits, Some("Image rhcos-1")), (goes_on, None)] {
        let scenario = Scenario::new(calls);
        let ctx = context(&scenario);
        let cluster = fixture::hosted_cluster("openstack");
        let facts = empty_facts(cluster, Capi::new(CapiTypes::Private), &ctx);
        let namespace = Namespace::Owned(control_plane_namespace::for_tests("clusters-one"));
        let progress = super::advance(&facts, &namespace, &ctx).await.unwrap();
        scenario.finish();
        match (progress, expected) {
            (Progress::Waiting(waiting), Some(expected)) => {
                let message = waiting.message();
                assert!(message.contains(expected), "{message}");
                let reason = "Deployment capi-provider, which removes it, does not exist";
                assert!(message.contains(reason), "{message}");
            }
            (progress, _) => assert_eq!(progress, Progress::Gone(Duration::ZERO)),
        }
    }
}

/// An object of the control plane's namespace, or of none, that a deletion by name would find.
fn others(name: &str, owner: Option<&str>) -> Value {
    let rest = json!({
        "metadata": {
            "namespace": "clusters-one",
            "annotations": owner.map(|owner| json!({ names::CLUSTER: owner })),
        },
        "spec": { "paused": true, "pausedUntil": "true" },
    });
    object(name, &[names::COMPONENT_FINALIZER], rest)
}

/// A control plane namespace in which everything has the names that this cluster would use.
fn populated(of_namespace: Option<&str>, of_objects: Option<&str>) -> Vec<Expect> {
    let one =
        |path: &str, name: &str, owner| Expect::get(path).answer(Answer::ok(&others(name, owner)));
    let all = |path: &str, name: &str| {
        Expect::get(path).answer(Answer::list(&[others(name, of_objects)]))
    };
    let deployment = |name: &str| one(&format!("{DEPLOYMENTS}/{name}"), name, of_objects);
    vec![
        none(POOLS),
        all(&capi("clusters"), "one-x7k2p"),
        all(LINKS, "router"),
        one(HCP, "one", of_objects),
        deployment("cluster-api"),
        deployment("capi-provider"),
        one(BINDING, "hypershift-cluster-api-clusters-one", of_objects),
        one(
            PKI_BINDING,
            "hypershift-control-plane-pki-operator-clusters-one",
            of_objects,
        ),
        one(APPROVER, "hypershift-csr-approver-clusters-one", of_objects),
        one(SIGNER, "hypershift-csr-signer-clusters-one", of_objects),
        one(
            APPROVER_ROLE,
            "hypershift-csr-approver-clusters-one",
            of_objects,
        ),
        one(
            SIGNER_ROLE,
            "hypershift-csr-signer-clusters-one",
            of_objects,
        ),
        one(NAMESPACE, "clusters-one", of_namespace),
    ]
}

/// T01, T20: nothing in a namespace of another cluster is written, deleted or waited for.
#[tokio::test]
async fn deletion_keeps_objects_of_another_cluster() {
    let (name, theirs) = ("clusters-one".to_owned(), Some("clusters-x/one"));
    let foreign = Namespace::Foreign {
        name: name.clone(),
        owner: "clusters-x/one".to_owned(),
    };
    let unclaimed = Namespace::Unclaimed(name.clone());
    // Another cluster creates it after it was read.
    let absent = Namespace::Absent(name);
    for (namespace, of_namespace, of_objects) in [
        (&foreign, theirs, theirs),
        (&foreign, theirs, None),
        (&unclaimed, None, theirs),
        (&unclaimed, None, None),
        (&absent, theirs, theirs),
        (&absent, theirs, None),
    ] {
        let scenario = Scenario::new([]).always(populated(of_namespace, of_objects));
        let progress = advance_in(namespace, &scenario).await;
        scenario.finish();
        assert_eq!(progress, Progress::Gone(Duration::ZERO), "{namespace:?}");
    }
}

/// T01: a cluster that was refused later deletes its annotated objects, and the namespace stays.
#[tokio::test]
async fn deletion_in_another_clusters_namespace_removes_own_objects() {
    let path = format!("{}/one-x7k2p", capi("clusters"));
    let own = others("one-x7k2p", Some("clusters/one"));
    let of_others = others("one-a2b3c", Some("clusters-x/one"));
    let clusters = Answer::list(&[of_others, own.clone()]);
    let scenario = Scenario::new([
        Expect::get(&capi("clusters")).answer(clusters.clone()),
        Expect::patch(&path)
            .body(json!({ "spec": { "paused": false }, "metadata": { "uid": "u" } }))
            .answer(Answer::ok(&own)),
        gone(HCP),
        none(POOLS),
        Expect::get(&capi("clusters")).answer(clusters),
        Expect::delete(&path)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&own)),
    ]);
    let foreign = Namespace::Foreign {
        name: "clusters-one".to_owned(),
        owner: "clusters-x/one".to_owned(),
    };
    let Progress::Waiting(waiting) = advance_in(&foreign, &scenario).await else {
        unreachable!("its own Cluster is there");
    };
    scenario.finish();
    assert_eq!((waiting.name.as_str(), waiting.detail), ("one-x7k2p", None));
}
