//! What is deleted on some platforms only.

use super::*;

const SECRETS: &str = "/api/v1/namespaces/clusters-one/secrets";
/// Images of OpenStack's provider.
const IMAGES: &str = "/apis/openstack.k-orc.cloud/v1alpha1/namespaces/clusters-one/images";
/// How many calls of [`nothing_left`] come before those for objects of the platform outside of the namespace.
const BEFORE_OUTSIDE: usize = 8;

/// Servers of OpenStack's provider.
fn servers() -> String {
    let group = api::group::infrastructure(CapiTypes::Private);
    format!("/apis/{group}/v1alpha1/namespaces/clusters-one/openstackservers")
}

fn own() -> Namespace {
    Namespace::Owned(control_plane_namespace::for_tests("clusters-one"))
}

async fn advance_on(platform: &str, namespace: &Namespace, scenario: &Scenario) -> Progress {
    let ctx = context(scenario);
    let cluster = fixture::hosted_cluster(platform);
    let facts = empty_facts(cluster, Capi::new(CapiTypes::Private), &ctx);
    let progress = super::super::advance(&facts, namespace, &ctx).await;
    progress.unwrap()
}

/// Calls of a deletion on OpenStack until the provider has cleaned up, but for its last images.
fn until_images(images: Answer) -> Vec<Expect> {
    vec![
        none(&capi("clusters")),
        gone(HCP),
        none(POOLS),
        Expect::get(IMAGES).answer(images),
    ]
}

/// Check O05. The controllers of images leave their finalizer, and stop before the namespace is deleted.
#[tokio::test]
async fn secrets_are_released_after_the_last_image() {
    let finalizer = "openstack.k-orc.cloud/image";
    let secret = |name: &str, finalizers: &[&str]| {
        let rest = json!({ "metadata": { "namespace": "clusters-one" } });
        object(name, finalizers, rest)
    };
    let held = secret("one-cloud", &[finalizer, "example.com/other"]);
    let kept = json!({ "resourceVersion": "7", "uid": "u", "finalizers": ["example.com/other"] });
    let secrets = [
        held.clone(),
        secret("pull-secret", &[]),
        secret("others", &["example.com/other"]),
    ];
    let mut calls = until_images(Answer::list(&[]));
    calls.extend([
        none(&servers()),
        Expect::get(SECRETS).answer(Answer::list(&secrets)),
        Expect::patch(&format!("{SECRETS}/one-cloud"))
            .body(json!({ "metadata": kept }))
            .answer(Answer::ok(&held)),
        none(&capi("clusters")),
    ]);
    let scenario = Scenario::new(calls.into_iter().chain(nothing_left()));
    let progress = advance_on("openstack", &own(), &scenario).await;
    assert_eq!(progress, Progress::Gone(Duration::ZERO));
    scenario.finish();
}

#[tokio::test]
async fn secrets_keep_the_finalizer_while_there_are_images() {
    let metadata = json!({
        "namespace": "clusters-one", "deletionTimestamp": "2030-01-31T12:00:00Z",
    });
    let finalizers = ["openstack.k-orc.cloud/image"];
    let image = object("rhcos-1", &finalizers, json!({ "metadata": metadata }));
    let mut calls = until_images(Answer::list(&[image]));
    calls.push(gone(&format!("{DEPLOYMENTS}/capi-provider")));
    let scenario = Scenario::new(calls);
    let progress = advance_on("openstack", &own(), &scenario).await;
    scenario.finish();
    let Progress::Waiting(waiting) = progress else {
        panic!("nothing is waited for: {progress:?}");
    };
    let message = waiting.message();
    let reason = "Deployment capi-provider, which removes it, does not exist";
    assert!(message.contains("Image rhcos-1"), "{message}");
    assert!(message.contains(reason), "{message}");
}

#[tokio::test]
async fn secrets_of_another_namespace_keep_their_finalizers() {
    let name = "clusters-one".to_owned();
    let owner = "clusters-x/one".to_owned();
    for namespace in [
        Namespace::Absent(name.clone()),
        Namespace::Unclaimed(name.clone()),
        Namespace::Foreign { name, owner },
    ] {
        let mut calls = until_images(Answer::list(&[]));
        calls.extend([none(&servers()), none(&capi("clusters"))]);
        let scenario = Scenario::new(calls.into_iter().chain(nothing_left()));
        let progress = advance_on("openstack", &namespace, &scenario).await;
        assert_eq!(progress, Progress::Gone(Duration::ZERO), "{namespace:?}");
        scenario.finish();
    }
}

/// Check T01: it is cluster-scoped, and deleted only if it names the cluster.
#[tokio::test]
async fn the_role_of_the_storage_driver_is_deleted_if_it_names_the_cluster() {
    let name = "clusters-one-kubevirt-csi-cluster";
    let kinds = ["clusterroles", "clusterrolebindings"];
    let paths = kinds.map(|kind| format!("/apis/rbac.authorization.k8s.io/v1/{kind}/{name}"));
    for (owner, is_deleted) in [
        (Some("clusters/one"), true),
        (Some("clusters-x/one"), false),
        (None, false),
    ] {
        let annotations = owner.map(|owner| json!({ names::CLUSTER: owner }));
        let role = object(
            name,
            &[],
            json!({ "metadata": { "annotations": annotations } }),
        );
        let mut calls = vec![
            none(&capi("clusters")),
            gone(HCP),
            none(POOLS),
            none(&capi("clusters")),
        ];
        calls.extend(nothing_left().take(BEFORE_OUTSIDE));
        for path in &paths {
            calls.push(Expect::get(path).answer(Answer::ok(&role)));
            if is_deleted {
                let body = json!({ "preconditions": { "uid": "u" } });
                calls.push(Expect::delete(path).body(body).answer(Answer::ok(&role)));
            }
        }
        calls.extend(nothing_left().skip(BEFORE_OUTSIDE));
        let scenario = Scenario::new(calls);
        let progress = advance_on("kubevirt", &own(), &scenario).await;
        assert_eq!(progress, Progress::Gone(Duration::ZERO), "{owner:?}");
        scenario.finish();
    }
}
