//! Which HostedCluster a namespace belongs to, and what that means for objects, locks and claims.

use super::*;

fn metadata(owner: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        uid: Some("u".to_owned()),
        annotations: owner.map(|owner| [(CLUSTER_ANNOTATION.to_owned(), owner.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// HostedCluster `clusters/a-b`, in a namespace with this owner.
fn namespace(owner: Option<&str>) -> Namespace {
    Namespace::evaluate("clusters", "a-b", Some(&metadata(owner)))
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

#[test]
fn each_cluster_is_evaluated_with_its_own_namespace() {
    let named = |name: &str, owner: Option<&str>| ObjectMeta {
        name: Some(name.to_owned()),
        ..metadata(owner)
    };
    let namespaces: Namespaces = [
        named("clusters-a-b", Some("clusters-a/b")),
        named("clusters-c", None),
    ]
    .into_iter()
    .collect();
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
