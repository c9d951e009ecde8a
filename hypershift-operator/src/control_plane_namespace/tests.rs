//! Whose a namespace is, and what that means for objects, locks and claims.

use serde_json::json;
use support::testing::{Answer, Expect, Scenario};

use super::*;

const PATH: &str = "/api/v1/namespaces/clusters-a-b";

fn metadata(owner: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        uid: Some("u".to_owned()),
        annotations: owner.map(|owner| [(CLUSTER.to_owned(), owner.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// HostedCluster `clusters/a-b`, in a namespace with this owner.
fn namespace(owner: Option<&str>) -> Namespace {
    Namespace::evaluate("clusters", "a-b", Some(&metadata(owner)))
}

fn found(owner: Option<&str>) -> Answer {
    let annotations = owner.map(|owner| json!({ CLUSTER: owner }));
    Answer::ok(&json!({ "metadata": {
        "name": "clusters-a-b", "uid": "u", "annotations": annotations,
    }}))
}

#[test]
fn only_the_annotation_of_the_namespace_makes_an_owner() {
    let absent = Namespace::evaluate("clusters", "a-b", None);
    assert_eq!(absent, Namespace::Absent("clusters-a-b".to_owned()));
    assert!(absent.is_usable() && absent.owned().is_none());
    let own = namespace(Some("clusters/a-b"));
    assert_eq!(own.owned().map(|it| &**it), Some("clusters-a-b"));
    for foreign in [Some("clusters-a/b"), Some("clusters"), Some(""), None] {
        let namespace = namespace(foreign);
        assert!(!namespace.is_usable(), "{foreign:?}");
        assert_eq!(namespace.owned(), None, "{foreign:?}");
        let refusal = namespace.refusal("clusters", "a-b").unwrap();
        assert!(refusal.contains("clusters-a-b"), "{refusal}");
        assert!(
            refusal.contains("rename") || refusal.contains("Rename"),
            "{refusal}"
        );
    }
}

#[test]
fn a_lock_counts_only_in_a_namespace_of_its_own() {
    let locked = || Protocol {
        legacy: true,
        in_progress: true,
        ..Protocol::default()
    };
    assert!(
        namespace(Some("clusters/a-b"))
            .protocol(locked())
            .in_progress
    );
    for foreign in [Some("clusters-a/b"), None] {
        let protocol = namespace(foreign).protocol(locked());
        assert!(!protocol.in_progress && protocol.legacy, "{foreign:?}");
    }
}

#[test]
fn an_object_without_an_owner_belongs_to_the_owner_of_the_namespace() {
    let (own, other) = (Some("clusters/a-b"), Some("clusters-a/b"));
    for (of_namespace, of_object, expected) in [
        (own, own, true),
        (own, None, true),
        (own, other, false),
        (other, other, false),
        (other, None, false),
        // What it made before the namespace was taken from it is still its own.
        (other, own, true),
        (None, own, true),
        (None, None, false),
    ] {
        let has = namespace(of_namespace).has("clusters/a-b", &metadata(of_object));
        assert_eq!(has, expected, "{of_namespace:?} {of_object:?}");
    }
    let absent = Namespace::evaluate("clusters", "a-b", None);
    assert!(!absent.has("clusters/a-b", &metadata(None)));
}

async fn claim(calls: impl IntoIterator<Item = Expect>) -> Result<ControlPlaneNamespace, Error> {
    let scenario = Scenario::new(calls);
    let claimed = Namespace::claim(&scenario.client(), "clusters", "a-b").await;
    scenario.finish();
    claimed
}

#[tokio::test]
async fn an_absent_namespace_is_created_with_its_owner() {
    let created = json!({ "metadata": {
        "name": "clusters-a-b",
        "annotations": { CLUSTER: "clusters/a-b" },
        "labels": { MANAGED_BY: OPERATOR },
    }});
    let claimed = claim([
        Expect::get(PATH).answer(Answer::error(404, "NotFound")),
        Expect::post("/api/v1/namespaces").body(created),
        Expect::get(PATH).answer(found(Some("clusters/a-b"))),
    ]);
    assert_eq!(&*claimed.await.unwrap(), "clusters-a-b");
}

#[tokio::test]
async fn a_namespace_that_another_cluster_creates_first_is_not_taken() {
    for owner in [Some("clusters-a/b"), None] {
        let claimed = claim([
            Expect::get(PATH).answer(Answer::error(404, "NotFound")),
            Expect::post("/api/v1/namespaces").answer(Answer::error(409, "AlreadyExists")),
            Expect::get(PATH).answer(found(owner)),
        ]);
        let error = claimed.await.unwrap_err();
        assert!(matches!(error, Error::ForeignNamespace { .. }), "{error}");
        let claimed = claim([Expect::get(PATH).answer(found(owner))]);
        claimed.await.unwrap_err();
    }
}

#[tokio::test]
async fn whose_namespaces_are_is_read_for_all_of_them() {
    let item = |name: &str, owner: &str| json!({ "metadata": { "name": name, "annotations": { CLUSTER: owner } } });
    let scenario = Scenario::new([Expect::get("/api/v1/namespaces").answer(Answer::list(&[
        item("clusters-a-b", "clusters-a/b"),
        json!({ "metadata": { "name": "clusters-c" } }),
    ]))]);
    let namespaces = Namespaces::list(&scenario.client()).await.unwrap();
    scenario.finish();
    assert!(namespaces.of("clusters", "a-b").is_foreign());
    assert!(namespaces.of("clusters-a", "b").owned().is_some());
    assert_eq!(
        namespaces.of("clusters", "c"),
        Namespace::Unclaimed("clusters-c".to_owned())
    );
    assert!(matches!(
        namespaces.of("clusters", "d"),
        Namespace::Absent(_)
    ));
}
