//! What is written for a class, and what is left of classes that are gone.

use payload::{Capabilities, Options, PullSecret, Releases};
use serde_json::Value;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::control_plane::hosted_cluster;
use crate::karpenter_operator::{fixtures, kubelet, version};
use crate::names;

const SECRETS: &str = "/api/v1/namespaces/clusters-one/secrets";

fn namespace() -> ControlPlaneNamespace {
    crate::control_plane_namespace::for_tests(fixtures::NAMESPACE)
}

fn shared(region: &str) -> Shared {
    let hcp = fixtures::control_plane();
    let release = fixtures::release("4.20.3");
    let pull_secret = br#"{"auths":{"images.example.com":{"auth":"YTpi"}}}"#.to_vec();
    Shared {
        cluster: hosted_cluster(&hcp, "ignition.one.example.com").unwrap(),
        types: api::group::CapiTypes::Private,
        region: region.to_owned(),
        channel: None,
        update_service: None,
        namespace: namespace(),
        releases: Releases::new(Options::default()).unwrap(),
        versions: version::Cluster {
            release: release.version.clone(),
            completed: Some(release.version.clone()),
            network: hcp
                .spec
                .networking
                .map(|it| it.network_type)
                .unwrap_or_default(),
        },
        release,
        capabilities: Capabilities::unknown(),
        pull_secret: PullSecret::parse(&pull_secret).unwrap(),
        pull_secret_bytes: pull_secret,
        trust_bundle: None,
        ssh_key: None,
        ignition_ca: Some(b"PEM".to_vec()),
        core: Vec::new(),
        secrets: Vec::new(),
        now: fixtures::now(),
    }
}

fn planned(name: &str, spec: &Value, shared: &Shared) -> Result<Detached, String> {
    let class = fixtures::class(name, spec);
    let text = kubelet::manifest(class.spec.kubelet.as_ref()).unwrap();
    let own = (names::KARPENTER_TAINT.to_owned(), text);
    plan(&class, shared, Arc::clone(&shared.release), own, "fresh")
}

#[test]
fn both_secrets_say_which_images_boot() {
    let made = planned("default", &json!({}), &shared("us-east-1")).unwrap();
    let metadata = &made.user_data().metadata;
    let expected = [
        ("hypershift.openshift.io/ami", "ami-0123"),
        ("hypershift.openshift.io/managed-by-karpenter", "true"),
    ];
    let labels = metadata.labels.as_ref().unwrap();
    for (label, value) in expected {
        assert_eq!(
            labels.get(label).map(String::as_str),
            Some(value),
            "{label}"
        );
    }
    let owner = metadata.annotations.as_ref().unwrap().get(NODE_POOL.key());
    assert_eq!(
        owner.map(String::as_str),
        Some("clusters-one/default-karpenter")
    );
    let problem = planned("default", &json!({}), &shared("mars-1")).unwrap_err();
    assert!(
        problem.contains("no image for machines in region mars-1"),
        "{problem}"
    );
}

/// A change of the hash replaces all nodes of a class.
#[test]
fn nodes_are_replaced_if_what_they_join_with_changes() {
    let shared = shared("us-east-1");
    let hash = |spec: Value| planned("a", &spec, &shared).unwrap().hash().to_owned();
    let before = hash(json!({}));
    for (name, spec, is_same) in [
        ("tags", json!({ "tags": { "team": "red" } }), true),
        (
            "subnets",
            json!({ "subnetSelectorTerms": [{ "id": "subnet-1" }] }),
            true,
        ),
        ("kubelet", json!({ "kubelet": { "maxPods": 100 } }), false),
    ] {
        assert_eq!(hash(spec) == before, is_same, "{name}");
    }
}

#[test]
fn classes_do_not_share_secrets() {
    let shared = shared("us-east-1");
    let name = |class: &str| {
        let made = planned(class, &json!({}), &shared).unwrap();
        made.user_data().metadata.name.clone().unwrap()
    };
    let longest = "c".repeat(253);
    let names = [
        name("a"),
        name("b"),
        name("a.b"),
        name(&longest),
        name(&longest[..252]),
    ];
    assert!(
        names
            .iter()
            .all(|it| it.len() <= 253 && it.starts_with("user-data-"))
    );
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
}

#[tokio::test]
async fn secrets_of_classes_that_are_gone_are_deleted() {
    let secret = |name: &str, owner: &str| json!({ "metadata": { "name": name, "uid": "u", "annotations": { NODE_POOL.key(): owner } } });
    let secrets = [
        secret("token-a", "clusters-one/a-karpenter"),
        secret("token-gone", "clusters-one/gone-karpenter"),
        // A NodePool's, whatever its labels are.
        secret("token-workers", "clusters/gone-karpenter"),
        secret("token-other", "clusters-one/workers"),
        json!({ "metadata": { "name": "token-nothing" } }),
    ];
    let scenario = Scenario::new([
        Expect::get(SECRETS).answer(Answer::list(&secrets)),
        Expect::delete(&format!("{SECRETS}/token-gone"))
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&secret("token-gone", ""))),
    ]);
    let ctx = fixtures::context(&scenario);
    let classes = [fixtures::class("a", &json!({}))];
    sweep(&ctx, &namespace(), &classes).await.unwrap();
    scenario.finish();
}
