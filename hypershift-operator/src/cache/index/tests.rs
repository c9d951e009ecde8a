//! The index after events of watches.

use kube::api::DynamicObject;
use kube::core::Status;
use serde_json::json;

use super::*;

const WATCHES: [&str; 2] = [SECRETS, CONFIG_MAPS];

fn object(namespace: &str, name: &str, version: &str) -> DynamicObject {
    let metadata = json!({
        "namespace": namespace, "name": name, "uid": name, "resourceVersion": version,
    });
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn refused(code: u16) -> kube::Error {
    kube::Error::Api(Box::new(Status::failure("", "").with_code(code)))
}

fn list(index: &Index, watch: &str, objects: Vec<DynamicObject>) {
    index.observe::<DynamicObject>(watch, &Ok(Event::Init));
    for object in objects {
        index.observe(watch, &Ok(Event::InitApply(object)));
    }
    index.observe::<DynamicObject>(watch, &Ok(Event::InitDone));
}

fn synced() -> Index {
    let index = Index::new(&WATCHES);
    list(&index, SECRETS, vec![object("a", "s", "1")]);
    list(&index, CONFIG_MAPS, vec![object("a", "m", "1")]);
    index
}

/// An unsynced or failed watch is not an empty list.
#[test]
fn a_watch_that_does_not_know_is_unknown_and_not_empty() {
    let index = Index::new(&WATCHES);
    let is_unknown = |index: &Index| {
        index.snapshot("a", Part::All).is_none()
            && index.count(SECRETS, "a").is_none()
            && index.version((SECRETS, "a", "s")).is_none()
    };
    list(&index, CONFIG_MAPS, Vec::new());
    assert!(is_unknown(&index), "it has not begun");
    index.observe::<DynamicObject>(SECRETS, &Ok(Event::Init));
    index.observe(SECRETS, &Ok(Event::InitApply(object("a", "s", "1"))));
    assert!(is_unknown(&index), "it has not listed to the end");
    let failed = Err(watcher::Error::InitialListFailed(refused(403)));
    index.observe::<DynamicObject>(SECRETS, &failed);
    assert!(is_unknown(&index), "its list is forbidden");
    list(&index, SECRETS, vec![object("a", "s", "1")]);
    assert_eq!(index.count(SECRETS, "a"), Some(1));
    let failed = Err(watcher::Error::WatchStartFailed(refused(403)));
    index.observe::<DynamicObject>(SECRETS, &failed);
    assert!(is_unknown(&index), "it may not watch any more");
    index.observe(SECRETS, &Ok(Event::Apply(object("a", "t", "2"))));
    assert_eq!(index.count(SECRETS, "a"), Some(2), "it has an event again");
    index.observe::<DynamicObject>(SECRETS, &Ok(Event::Init));
    assert!(is_unknown(&index), "it lists again");
    let absent = Err(watcher::Error::InitialListFailed(refused(404)));
    index.observe::<DynamicObject>(SECRETS, &absent);
    assert_eq!(index.count(SECRETS, "a"), Some(0), "there is no such kind");
}

#[test]
fn every_change_of_a_namespace_is_seen_and_no_other() {
    let changes: [(&str, &str, Event<DynamicObject>, bool); 6] = [
        (
            "changed",
            SECRETS,
            Event::Apply(object("a", "s", "2")),
            true,
        ),
        (
            "made",
            CONFIG_MAPS,
            Event::Apply(object("a", "n", "1")),
            true,
        ),
        (
            "gone",
            CONFIG_MAPS,
            Event::Delete(object("a", "m", "3")),
            true,
        ),
        ("again", SECRETS, Event::Apply(object("a", "s", "1")), false),
        (
            "elsewhere",
            SECRETS,
            Event::Apply(object("b", "s", "1")),
            false,
        ),
        (
            "not there",
            SECRETS,
            Event::Delete(object("a", "x", "1")),
            false,
        ),
    ];
    for (name, watch, event, expected) in changes {
        let index = synced();
        let snapshot = index.snapshot("a", Part::All).unwrap();
        index.observe(watch, &Ok(event));
        assert_eq!(!index.is_unchanged(&snapshot), expected, "{name}");
    }
    let index = synced();
    let snapshot = index.snapshot("a", Part::All).unwrap();
    list(&index, SECRETS, vec![object("a", "s", "1")]);
    assert!(index.is_unchanged(&snapshot), "it was listed again");
    list(&index, SECRETS, Vec::new());
    assert!(
        !index.is_unchanged(&snapshot),
        "it was gone when it was listed"
    );
}

#[test]
fn single_objects_of_other_namespaces_are_seen() {
    let index = synced();
    let named = |name| {
        index.also(
            index.snapshot("a", Part::All).unwrap(),
            &[(SECRETS, "home", name)],
        )
    };
    let (pull, other) = (named("pull").unwrap(), named("other").unwrap());
    assert!(index.is_unchanged(&pull) && index.is_unchanged(&other));
    index.observe(SECRETS, &Ok(Event::Apply(object("home", "pull", "1"))));
    assert!(!index.is_unchanged(&pull) && index.is_unchanged(&other));
    let known = named("pull").unwrap();
    index.observe(SECRETS, &Ok(Event::Delete(object("home", "pull", "2"))));
    assert!(!index.is_unchanged(&known));
    assert!(index.is_unchanged(&pull), "as at first");
}

#[test]
fn kinds_come_and_go() {
    let index = synced();
    let snapshot = index.snapshot("a", Part::All).unwrap();
    index.begin("machines");
    assert!(!index.is_unchanged(&snapshot), "it has not listed yet");
    let absent = Err(watcher::Error::InitialListFailed(refused(404)));
    index.observe::<DynamicObject>("machines", &absent);
    assert_eq!(index.count("machines", "a"), None, "its CRD is there");
    list(&index, "machines", Vec::new());
    assert!(index.is_unchanged(&snapshot));
    list(&index, "machines", vec![object("a", "m", "1")]);
    assert!(!index.is_unchanged(&snapshot));
    index.end("machines");
    assert!(index.is_unchanged(&snapshot));
    assert_eq!(index.count("machines", "a"), None);
}

/// An object of the control plane of `clusters/one`, as it says.
fn annotated(namespace: Option<&str>, version: &str) -> DynamicObject {
    let mut object = object("", "b", version);
    object.metadata.namespace = namespace.map(str::to_owned);
    let key = "hypershift.openshift.io/cluster".to_owned();
    object.metadata.annotations = Some([(key, "clusters/one".to_owned())].into());
    object
}

/// Check T01.
#[test]
fn objects_of_other_tenants_do_not_count_for_a_control_plane() {
    let (deployments, roles) = (LABELLED[1], LABELLED[5]);
    let cases = [
        (SECRETS, false),
        (CONFIG_MAPS, false),
        // A tenant can give an object the operator's label.
        (deployments, false),
        // Of this operator: it puts roles where the agents are.
        (roles, true),
    ];
    for (watch, expected) in cases {
        let index = Index::new(&[watch]);
        list(&index, watch, Vec::new());
        let before = [Part::All, Part::Owned].map(|it| index.snapshot("clusters-one", it).unwrap());
        index.observe(watch, &Ok(Event::Apply(annotated(Some("other"), "1"))));
        for snapshot in before {
            assert_eq!(!index.is_unchanged(&snapshot), expected, "{watch}");
        }
    }
}

/// Objects of a control plane in other namespaces count for its namespace, too.
#[test]
fn objects_of_a_control_plane_count_for_it_wherever_they_are() {
    for namespace in [None, Some("clusters"), Some("clusters-one")] {
        let index = Index::new(&[SECRETS]);
        list(&index, SECRETS, vec![annotated(namespace, "1")]);
        let snapshots =
            || [Part::All, Part::Owned].map(|it| index.snapshot("clusters-one", it).unwrap());
        let before = snapshots();
        index.observe(SECRETS, &Ok(Event::Apply(annotated(namespace, "2"))));
        assert!(
            before.iter().all(|it| !index.is_unchanged(it)),
            "{namespace:?} is changed"
        );
        let before = snapshots();
        index.observe(SECRETS, &Ok(Event::Apply(object("clusters-one", "x", "1"))));
        let [all, owned] = before.map(|it| index.is_unchanged(&it));
        assert!(!all && owned, "{namespace:?}: another object");
        index.observe(
            SECRETS,
            &Ok(Event::Delete(object("clusters-one", "x", "1"))),
        );
        let before = snapshots();
        index.observe(SECRETS, &Ok(Event::Delete(annotated(namespace, "2"))));
        assert!(
            before.iter().all(|it| !index.is_unchanged(it)),
            "{namespace:?} is deleted"
        );
        let inside = usize::from(namespace == Some("clusters-one"));
        list(&index, SECRETS, vec![annotated(namespace, "1")]);
        assert_eq!(index.count(SECRETS, "clusters-one"), Some(inside));
    }
}
