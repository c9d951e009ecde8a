//! Versions, preconditions, finalizers, history and limits.

use super::*;
use crate::groups::Program;

fn routes() -> &'static Kind {
    &Program::OpenShift
        .group("route.openshift.io")
        .unwrap()
        .kinds[0]
}

fn stamp() -> Stamp {
    Stamp {
        time: "2026-01-01T00:00:00Z".to_owned(),
        uid: "12345678".to_owned(),
    }
}

fn route(name: &str) -> Value {
    json!({
        "apiVersion": "route.openshift.io/v1", "kind": "Route",
        "metadata": { "name": name, "uid": "mine", "namespace": "other" },
        "spec": { "host": "a.test" },
    })
}

fn create(store: &mut Store, name: &str) -> Result<Arc<Value>, Failure> {
    store.create(routes(), "ns", route(name), &stamp())
}

fn codes(results: Vec<Result<Arc<Value>, Failure>>) -> Vec<u16> {
    let codes = results
        .into_iter()
        .map(|it| it.map_or_else(|it| it.code, |_| 0));
    codes.collect()
}

#[test]
fn an_object_lives_from_creation_to_deletion() {
    let mut store = Store::new(100);
    let place = Place::new(routes(), "ns", "a");
    let created = create(&mut store, "a").unwrap();
    assert_eq!(created["metadata"]["resourceVersion"], "101");
    assert_eq!(created["metadata"]["uid"], "12345678");
    assert_eq!(created["metadata"]["namespace"], "ns");
    let patched = store
        .patch(&place, &json!({ "spec": { "host": null, "path": "/x" } }))
        .unwrap();
    assert_eq!(patched["spec"], json!({ "path": "/x" }));
    // Nothing changes: no version, no event.
    let same = store
        .patch(&place, &json!({ "spec": { "path": "/x" } }))
        .unwrap();
    assert_eq!(same["metadata"]["resourceVersion"], "102");
    assert_eq!(store.list(routes(), "", &Selector::default()).len(), 1);
    assert_eq!(store.list(routes(), "other", &Selector::default()).len(), 0);
    store
        .delete(&place, &Preconditions::default(), &stamp())
        .unwrap();
    assert_eq!(store.get(&place).unwrap_err().code, 404);
    let changes = store.changes_after(100).unwrap();
    let seen: Vec<_> = changes
        .iter()
        .map(|it| (it.version, it.before.is_some(), it.after.is_some()))
        .collect();
    assert_eq!(
        seen,
        [(101, false, true), (102, true, true), (103, true, false)]
    );
}

#[test]
fn bad_writes_are_rejected() {
    let mut store = Store::new(0);
    let place = Place::new(routes(), "ns", "a");
    let live = create(&mut store, "a").unwrap();
    let mut renamed = (*live).clone();
    renamed["metadata"]["name"] = json!("b");
    let mut other_kind = route("b");
    other_kind["kind"] = json!("User");
    let version = |version: &str| json!({ "metadata": { "resourceVersion": version } });
    let outdated = Preconditions::of(&json!({ "uid": "another" }));
    let results = vec![
        create(&mut store, "a"),
        create(&mut store, ""),
        create(&mut store, "x/y"),
        create(&mut store, &"x".repeat(254)),
        store.create(routes(), "ns", other_kind, &stamp()),
        store.update(&place, renamed),
        store.patch(&place, &version("77")),
        store.delete(&place, &outdated, &stamp()),
        store.patch(&Place::new(routes(), "ns", "b"), &json!({})),
        store.patch(&place, &version("1")),
    ];
    assert_eq!(
        codes(results),
        [409, 422, 422, 422, 400, 400, 409, 409, 404, 0]
    );
    assert_eq!(store.version(), 1, "nothing was written");
}

#[test]
fn finalizers_delay_the_deletion() {
    let mut store = Store::new(0);
    let place = Place::new(routes(), "ns", "a");
    create(&mut store, "a").unwrap();
    let held = json!({ "metadata": { "finalizers": ["test/hold"] } });
    store.patch(&place, &held).unwrap();
    for _ in 0..2 {
        let marked = store
            .delete(&place, &Preconditions::default(), &stamp())
            .unwrap();
        assert_eq!(marked["metadata"]["deletionTimestamp"], stamp().time);
        assert_eq!(store.version(), 3);
    }
    // No client takes the mark away.
    let kept = store.patch(
        &place,
        &json!({ "metadata": { "deletionTimestamp": null } }),
    );
    assert_eq!(kept.unwrap()["metadata"]["deletionTimestamp"], stamp().time);
    store
        .patch(&place, &json!({ "metadata": { "finalizers": [] } }))
        .unwrap();
    assert_eq!(store.get(&place).unwrap_err().code, 404);
}

#[test]
fn history_and_objects_are_bounded() {
    let mut store = Store::new(0);
    assert_eq!(store.changes_after(0).unwrap().len(), 0);
    for at in 0..MAX_OBJECTS {
        create(&mut store, &format!("r{at}")).unwrap();
    }
    assert_eq!(create(&mut store, "one-more").unwrap_err().code, 403);
    let oldest = (MAX_OBJECTS - MAX_HISTORY) as u64;
    assert_eq!(store.changes_after(oldest).unwrap().len(), MAX_HISTORY);
    assert_eq!(store.changes_after(oldest - 1).unwrap_err().code, 410);
}

/// After a restart, watches from an earlier process list again.
#[test]
fn versions_of_an_earlier_process_are_expired() {
    let store = Store::new(5_000);
    assert_eq!(store.changes_after(4_000).unwrap_err().code, 410);
    assert_eq!(store.changes_after(5_000).unwrap().len(), 0);
}
