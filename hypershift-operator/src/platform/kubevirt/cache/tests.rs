//! Copies of boot images.

use support::testing::{Answer, Expect, Scenario};

use super::*;

const PATH: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/machines/datavolumes";

fn copy(name: &str, pool: &str, hash: &str) -> Value {
    json!({ "metadata": {
        "name": name,
        "uid": format!("uid-{name}"),
        "labels": { ROLE_LABEL: ROLE, POOL_LABEL: pool },
        "annotations": { HASH: hash },
    } })
}

fn deleted(mut copy: Value) -> Value {
    copy["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
    copy
}

fn pool(recorded: Option<&str>) -> NodePool {
    let mut pool = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "NodePool",
        "metadata": { "namespace": "clusters", "name": "workers", "uid": "u" },
        "spec": {
            "clusterName": "one",
            "release": { "image": "quay.example.com/release:4.20" },
            "management": { "upgradeType": "Replace" },
            "platform": { "type": "KubeVirt" },
        },
    });
    if let Some(name) = recorded {
        pool["status"] = json!({ "platform": { "kubeVirt": { "cacheName": name } } });
    }
    serde_json::from_value(pool).unwrap()
}

fn wanted() -> Wanted {
    Wanted {
        hash: "bb".to_owned(),
        spec: json!({ "source": { "registry": { "url": "docker://images.example.com/disk@sha256:bb" } } }),
    }
}

fn list_of(copies: &[Value]) -> Expect {
    // API servers write `null` for a list of metadata without items.
    let items = (!copies.is_empty()).then_some(copies);
    let list = json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadataList",
        "metadata": { "resourceVersion": "1" },
        "items": items,
    });
    Expect::get(&format!("{PATH}?nodepool-uid%3Du")).answer(Answer::ok(&list))
}

async fn ensured(calls: Vec<Expect>, recorded: Option<&str>) -> Result<String, String> {
    let scenario = Scenario::new(calls);
    let infra = InfraCluster::local(scenario.client(), "machines");
    let found = ensure(&infra, &pool(recorded), &wanted()).await;
    scenario.finish();
    found
}

#[test]
fn the_copy_with_the_image_is_used_and_others_are_deleted() {
    let a = copy("a", "u", "bb");
    let b = copy("b", "u", "bb");
    let old = copy("old", "u", "aa");
    for (name, copies, recorded, used, outdated) in [
        ("none", vec![], None, None, vec![]),
        ("one", vec![&a], None, Some("a"), vec![]),
        ("an old one", vec![&old], Some("old"), None, vec!["old"]),
        ("the first", vec![&b, &a], None, Some("a"), vec!["b"]),
        (
            "the recorded one",
            vec![&a, &b],
            Some("b"),
            Some("b"),
            vec!["a"],
        ),
        (
            "one that is gone",
            vec![&a, &old],
            Some("c"),
            Some("a"),
            vec!["old"],
        ),
        (
            "one that is going",
            vec![&deleted(a.clone())],
            Some("a"),
            None,
            vec![],
        ),
    ] {
        let copies = copies.into_iter().map(|it| {
            let listed: Listed = serde_json::from_value(it.clone()).unwrap();
            listed.metadata
        });
        let copies: Vec<_> = copies.collect();
        let choice = choose(&copies, recorded, "bb");
        assert_eq!(choice.used, used, "{name}");
        let names = choice.outdated.iter().filter_map(|it| it.name.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), outdated, "{name}");
    }
}

/// Check F05: ten machines are clones of one copy.
#[tokio::test]
async fn a_copy_is_created_once_for_each_image() {
    let created = json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {
            "generateName": "kv-boot-image-cache-",
            "namespace": "machines",
            "labels": {
                "hypershift.openshift.io/is-kubevirt-rhcos": "true",
                "hypershift.openshift.io/kubevirt-boot-image-role": "kv-boot-image-cache",
                "hypershift.openshift.io/nodepool-uid": "u",
            },
            "annotations": {
                "hypershift.openshift.io/kubevirt-boot-image-hash": "bb",
                "cdi.kubevirt.io/storage.bind.immediate.requested": "true",
                "cdi.kubevirt.io/storage.deleteAfterCompletion": "false",
            },
        },
        "spec": wanted().spec,
    });
    let name = "kv-boot-image-cache-x7k2p";
    let post = Expect::post(PATH)
        .body(created)
        .answer(Answer::ok(&copy(name, "u", "bb")));
    let remove = Expect::delete(&format!("{PATH}/old"))
        .body(json!({ "preconditions": { "uid": "uid-old" } }));
    let calls = vec![list_of(&[copy("old", "u", "aa")]), post, remove];
    assert_eq!(ensured(calls, Some("old")).await.unwrap(), name);
    let again = vec![list_of(&[copy(name, "u", "bb")])];
    assert_eq!(ensured(again, Some(name)).await.unwrap(), name);
}

/// Check T10: a server that a user names returns what it likes.
#[tokio::test]
async fn copies_of_others_and_invalid_names_are_ignored() {
    let others = [
        copy("other", "another", "bb"),
        copy("../../secrets/a", "u", "bb"),
        json!({ "metadata": { "name": "unlabelled" } }),
    ];
    let post = Expect::post(PATH).answer(Answer::ok(&copy("a/b", "u", "bb")));
    let problem = ensured(vec![list_of(&others), post], None)
        .await
        .unwrap_err();
    assert!(
        problem.ends_with("its response has no valid name"),
        "{problem}"
    );
    let scenario = Scenario::new([list_of(&others)]);
    let infra = InfraCluster::local(scenario.client(), "machines");
    delete(&infra, &pool(None)).await.unwrap();
    scenario.finish();
}

/// Check T04: of a `DataVolume` only the metadata are read, and one with other metadata is reported for its own pool.
#[tokio::test]
async fn volumes_that_cannot_be_read_hold_up_their_own_pool_only() {
    let deep = (0..300).fold(json!("end"), |inner, _| json!({ "a": inner }));
    let mut odd = copy("a", "u", "bb");
    odd["spec"] = deep.clone();
    odd["status"] = json!(7);
    assert_eq!(ensured(vec![list_of(&[odd])], None).await.unwrap(), "a");
    let mut invalid = copy("a", "u", "bb");
    invalid["metadata"]["labels"] = deep;
    let problem = ensured(vec![list_of(&[invalid])], None).await.unwrap_err();
    let expected = "failed to list DataVolumes in namespace machines of the infrastructure cluster: its response is not";
    assert!(problem.starts_with(expected), "{problem}");
}

#[tokio::test]
async fn failures_have_the_cause_and_the_way_out() {
    for (code, reason, expected) in [
        (404, "NotFound", "install the Containerized Data Importer"),
        (403, "Forbidden", "it responds with status 403"),
    ] {
        let refused = Expect::get(PATH).answer(Answer::error(code, reason));
        let problem = ensured(vec![refused], None).await.unwrap_err();
        assert!(problem.contains(expected), "{problem}");
        assert!(problem.contains("namespace machines"), "{problem}");
    }
}

#[test]
fn pools_have_copies_only_if_they_asked_for_them() {
    assert!(!may_have_copies(&pool(None)));
    assert!(may_have_copies(&pool(Some("a"))));
    let mut asking = pool(None);
    let kubevirt = json!({ "rootVolume": { "cacheStrategy": { "type": "PVC" } } });
    asking.spec.platform.kubevirt = serde_json::from_value(kubevirt).unwrap();
    assert!(may_have_copies(&asking));
}
