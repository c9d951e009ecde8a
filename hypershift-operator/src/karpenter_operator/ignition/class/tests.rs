//! What is written for a class, and what is left of classes that are gone.

mod configure;

use serde_json::Value;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::karpenter_operator::ignition::fixtures::{namespace, shared};
use crate::karpenter_operator::{fixtures, kubelet};
use crate::names;

const SECRETS: &str = "/api/v1/namespaces/clusters-one/secrets";

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

/// The hash names the configuration, and Karpenter replaces nodes when their user data changes.
#[test]
fn the_hash_changes_with_the_user_data_and_only_then() {
    type Change = fn(&mut Shared);
    let read = |change: Change| {
        let mut shared = shared("us-east-1");
        change(&mut shared);
        let made = planned("a", &json!({}), &shared).unwrap();
        (made.hash().to_owned(), made.user_data().data.clone())
    };
    let table: [(&str, Change, bool); 6] = [
        (
            "time",
            |it| it.now = "2030-02-28T12:00:00Z".parse().unwrap(),
            true,
        ),
        (
            "the content of the pull secret",
            |it| it.pull_secret_bytes = br#"{"auths":{}}"#.to_vec(),
            true,
        ),
        (
            "Secrets of other classes",
            |it| {
                let secret = json!({ "metadata": {
                    "name": "user-data-b-karpenter-0a1b2c3d",
                    "annotations": { NODE_POOL.key(): "clusters-one/b-karpenter" },
                } });
                it.secrets = vec![serde_json::from_value(secret).unwrap()];
            },
            true,
        ),
        (
            "the release",
            |it| it.release = fixtures::release("4.20.2"),
            false,
        ),
        (
            "the proxy",
            |it| it.cluster.spec.configuration = None,
            false,
        ),
        (
            "manifests of the control plane",
            |it| {
                let text = json!({
                    "apiVersion": "machineconfiguration.openshift.io/v1",
                    "kind": "MachineConfig",
                    "metadata": { "name": "core" },
                    "spec": { "kernelArguments": ["quiet"] },
                });
                it.core = vec![("core".to_owned(), Some(text.to_string()))];
            },
            false,
        ),
    ];
    let (hash, user_data) = read(|_| {});
    for (name, change, is_same) in table {
        let after = read(change);
        assert_eq!(after.0 == hash, is_same, "{name}");
        assert_eq!(after.1 == user_data, is_same, "{name}");
    }
}

/// The second time that it is looked at: a release that is newer than the control plane is not written.
#[test]
fn nodes_are_never_newer_than_the_control_plane() {
    let mut shared = shared("us-east-1");
    for (completed, is_written) in [("4.20.3", true), ("4.20.2", false), ("4.19.9", false)] {
        shared.versions.completed = Some(completed.parse().unwrap());
        let made = planned("a", &json!({}), &shared);
        assert_eq!(made.is_ok(), is_written, "{completed}");
        let problem = made.err().unwrap_or_default();
        assert!(is_written || problem.contains("cannot join"), "{problem}");
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
