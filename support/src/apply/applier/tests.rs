//! Applies to a mock API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::testing::{Answer, Expect, Scenario};

const PATH: &str = "/api/v1/namespaces/a/configmaps/b";

fn wanted() -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("a".to_owned()),
            name: Some("b".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
        ..ConfigMap::default()
    }
}

fn live(value: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": "a",
            "name": "b",
            "uid": "u",
            "resourceVersion": version,
            "managedFields": [{
                "manager": "m",
                "operation": "Apply",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": { "f:data": { "f:k": {} } },
            }],
        },
        "data": { "k": value },
    })
}

fn get(value: &str, version: &str) -> Expect {
    Expect::get(PATH).answer(Answer::ok(&live(value, version)))
}

/// Check O06.
#[tokio::test]
async fn an_object_that_is_up_to_date_is_not_written() {
    let scenario = Scenario::new([get("v", "1")]);
    let applier = Applier::new(scenario.client(), "m");
    let done = applier.apply(&wanted()).await.unwrap();
    assert_eq!(done.change, Change::None);
    assert_eq!(done.object.metadata.uid.as_deref(), Some("u"));
    scenario.finish();
}

#[tokio::test]
async fn a_conflict_is_resolved_by_reading_and_applying_again() {
    let decided_on = |version: &str| {
        Expect::patch(&format!("{PATH}?force=true&fieldManager=m")).body(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "uid": "u", "resourceVersion": version },
            "data": { "k": "v" },
        }))
    };
    let scenario = Scenario::new([
        get("x", "1"),
        decided_on("1").answer(Answer::error(409, "Conflict")),
        get("y", "2"),
        decided_on("2").answer(Answer::ok(&live("v", "3"))),
    ]);
    let applier = Applier::new(scenario.client(), "m");
    let done = applier.apply(&wanted()).await.unwrap();
    assert_eq!(done.change, Change::Updated);
    scenario.finish();
}

/// A memory with a fixed result, which records the versions that were applied.
#[derive(Debug)]
struct Fixed(Known, std::sync::Mutex<Vec<Option<String>>>);

impl Memory for Fixed {
    fn known(&self, _: Desired<'_>) -> Known {
        self.0
    }

    fn applied(&self, _: Desired<'_>, _: Option<&str>, found: &ObjectMeta) {
        self.1.lock().unwrap().push(found.resource_version.clone());
    }

    fn is_absent(&self, _: &ApiResource, _: &str, _: &str) -> bool {
        self.0 == Known::Absent
    }

    fn absent(&self, _: &ApiResource, _: &str, _: &str) {}
}

/// Check O06.
#[tokio::test]
async fn what_is_known_is_not_read() {
    let create = || Expect::patch(PATH).answer(Answer::ok(&live("v", "1")));
    for (known, calls, change, version) in [
        (Known::Settled, vec![], Change::None, None),
        (Known::Absent, vec![create()], Change::Created, Some("1")),
        (Known::Nothing, vec![get("v", "2")], Change::None, Some("2")),
    ] {
        let scenario = Scenario::new(calls);
        let memory = Arc::new(Fixed(known, std::sync::Mutex::default()));
        let applier = Applier::new(scenario.client(), "m").with_memory(memory.clone());
        assert_eq!(applier.ensure(&wanted()).await.unwrap(), change);
        scenario.finish();
        let recorded = memory.1.lock().unwrap().pop().flatten();
        assert_eq!(recorded.as_deref(), version, "{known:?}");
    }
}

#[tokio::test]
async fn an_object_that_does_not_exist_is_created() {
    let scenario = Scenario::new([
        Expect::get(PATH).answer(Answer::error(404, "NotFound")),
        Expect::patch(PATH).answer(Answer::ok(&live("v", "1"))),
    ]);
    let applier = Applier::new(scenario.client(), "m");
    let done = applier.apply(&wanted()).await.unwrap();
    assert_eq!(done.change, Change::Created);
    scenario.finish();
}

#[tokio::test]
async fn an_object_is_deleted_once_and_then_waited_for() {
    let resource = ApiResource::erase::<ConfigMap>(&());
    let mut going = live("v", "2");
    going["metadata"]["deletionTimestamp"] = json!("2030-01-31T12:00:00Z");
    going["metadata"]["finalizers"] = json!(["example.com/f"]);
    let scenario = Scenario::new([
        get("v", "1"),
        Expect::delete(PATH)
            .body(json!({ "preconditions": { "uid": "u" } }))
            .answer(Answer::ok(&going)),
        Expect::get(PATH).answer(Answer::ok(&going)),
        Expect::get(PATH).answer(Answer::error(404, "NotFound")),
    ]);
    let applier = Applier::new(scenario.client(), "m");
    let delete = async || applier.delete(&resource, Some("a"), "b").await.unwrap();
    assert!(!delete().await.is_gone());
    let Deletion::Waiting(metadata) = delete().await else {
        unreachable!("the object has a finalizer");
    };
    assert_eq!(
        metadata.finalizers.as_deref(),
        Some(["example.com/f".to_owned()].as_slice())
    );
    assert!(delete().await.is_gone());
    scenario.finish();
}

#[tokio::test]
async fn errors_name_the_object() {
    let scenario = Scenario::new([Expect::get(PATH).answer(Answer::error(403, "Forbidden"))]);
    let applier = Applier::new(scenario.client(), "m");
    let error = applier.apply(&wanted()).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to get ConfigMap a/b");
    assert_eq!(error.reason(), "Forbidden");
}
