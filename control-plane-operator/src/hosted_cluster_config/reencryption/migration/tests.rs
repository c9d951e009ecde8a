//! Tests of migrations.

use support::testing::{Answer, Expect, Scenario};

use super::*;

const LIST: &str = "/apis/migration.k8s.io/v1alpha1/storageversionmigrations";
const KEY: &str = "encryption-key-f";

fn now() -> Timestamp {
    "2030-01-01T01:00:00Z".parse().unwrap()
}

fn migration(name: &str, key: Option<&str>, conditions: &Value) -> Value {
    json!({
        "apiVersion": "migration.k8s.io/v1alpha1", "kind": "StorageVersionMigration",
        "metadata": {
            "name": name, "uid": "u", "resourceVersion": "7", "creationTimestamp": "2030-01-01T00:00:00Z",
            "annotations": key.map(|key| json!({ WRITE_KEY: key })),
        },
        "status": { "conditions": conditions },
    })
}

fn is(type_: &str, status: &str, updated: Option<&str>) -> Value {
    json!([{ "type": type_, "status": status, "message": "m", "lastUpdateTime": updated }])
}

#[test]
fn states_follow_key_and_conditions() {
    let recent = Some("2030-01-01T00:55:00Z");
    let old = Some("2030-01-01T00:49:00Z");
    let failed = State::Failed("m".to_owned());
    for (key, conditions, expected) in [
        (Some(KEY), json!(null), State::Running),
        (Some(KEY), is("Running", "True", recent), State::Running),
        (Some(KEY), is("Succeeded", "True", old), State::Succeeded),
        (Some(KEY), is("Succeeded", "False", old), State::Running),
        (Some(KEY), is("Failed", "False", old), State::Running),
        (Some(KEY), is("Failed", "True", recent), failed),
        (Some(KEY), is("Failed", "True", old), State::Outdated),
        // Without a time, that of the creation counts.
        (Some(KEY), is("Failed", "True", None), State::Outdated),
        (
            Some("encryption-key-e"),
            is("Succeeded", "True", old),
            State::Outdated,
        ),
        (
            None,
            is("Succeeded", "True", old),
            State::Failed(foreign("a")),
        ),
    ] {
        let found = migration("a", key, &conditions);
        let found = serde_json::from_value(found).unwrap();
        assert_eq!(
            state(Some(&found), KEY, now()),
            expected,
            "{key:?} {conditions}"
        );
    }
    assert_eq!(state(None, KEY, now()), State::Absent);
}

#[test]
fn progress_names_what_is_left() {
    let failed = || State::Failed("why".to_owned());
    for (states, expected) in [
        (vec![], Progress::Done),
        (
            vec![("a", State::Succeeded), ("b", State::Succeeded)],
            Progress::Done,
        ),
        (
            vec![
                ("a", State::Succeeded),
                ("b", State::Running),
                ("c", State::Running),
            ],
            Progress::Running("b, c (1 of 3 done)".to_owned()),
        ),
        (
            vec![("a", failed()), ("b", State::Running), ("c", failed())],
            Progress::Failed("a: why; c: why".to_owned()),
        ),
    ] {
        assert_eq!(progress(&states), expected);
    }
}

/// All resources of a key management service; one group is not served, and one resource of another group.
#[tokio::test]
async fn migrations_are_created_for_resources_that_are_served() {
    let group = |name: &str| {
        let version = json!({ "groupVersion": format!("{name}/v1"), "version": "v1" });
        json!({ "name": name, "versions": [version], "preferredVersion": version })
    };
    let groups = json!({ "groups": [group("route.openshift.io"), group("oauth.openshift.io")] });
    let served = |group: &str, name: &str| {
        json!({ "groupVersion": format!("{group}/v1"), "resources": [
            { "name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": [] },
        ] })
    };
    let post = |name: &str, group: &str, resource: &str| {
        let object = json!({
            "metadata": { "name": name, "annotations": { WRITE_KEY: KEY } },
            "spec": { "resource": { "group": group, "version": "v1", "resource": resource } },
        });
        let answer = Answer::ok(&migration(name, Some(KEY), &json!([])));
        Expect::post(LIST).body(object).answer(answer)
    };
    let scenario = Scenario::new([
        Expect::get(LIST).answer(Answer::list(&[])),
        post("encryption-migration-core-secrets", "", "secrets"),
        post("encryption-migration-core-configmaps", "", "configmaps"),
        Expect::get("/apis").answer(Answer::ok(&groups)),
        Expect::get("/apis/route.openshift.io/v1")
            .answer(Answer::ok(&served("route.openshift.io", "routes"))),
        post(
            "encryption-migration-route.openshift.io-routes",
            "route.openshift.io",
            "routes",
        ),
        Expect::get("/apis").answer(Answer::ok(&groups)),
        Expect::get("/apis/oauth.openshift.io/v1")
            .answer(Answer::ok(&served("oauth.openshift.io", "other"))),
        Expect::get("/apis").answer(Answer::ok(&groups)),
    ]);
    let resources = [
        "secrets",
        "configmaps",
        "routes.route.openshift.io",
        "oauthaccesstokens.oauth.openshift.io",
        "others.example.com",
    ]
    .map(str::to_owned);
    let progress = run(&scenario.client(), &resources, "f", now())
        .await
        .unwrap();
    let left = "secrets, configmaps, routes.route.openshift.io (0 of 3 done)";
    assert_eq!(progress, Progress::Running(left.to_owned()));
    scenario.finish();
}

/// A migration for another key, and one that failed a while ago. A failed precondition is looked at by the next pass.
#[tokio::test]
async fn outdated_migrations_are_replaced() {
    let name = "encryption-migration-core-secrets";
    let one = format!("{LIST}/{name}");
    let delete = Expect::delete(&one)
        .body(json!({ "preconditions": { "uid": "u", "resourceVersion": "7" } }));
    let failed = is("Failed", "True", Some("2030-01-01T00:00:00Z"));
    let created = migration(name, Some(KEY), &json!([]));
    for (found, deleted, created) in [
        (
            migration(name, Some("e"), &json!([])),
            Answer::ok(&json!({ "status": "Success" })),
            Some(Answer::ok(&created)),
        ),
        (
            migration(name, Some(KEY), &failed),
            Answer::ok(&json!({ "status": "Success" })),
            Some(Answer::ok(&created)),
        ),
        (
            migration(name, Some("e"), &json!([])),
            Answer::error(404, "NotFound"),
            Some(Answer::error(409, "AlreadyExists")),
        ),
        (
            migration(name, Some("e"), &json!([])),
            Answer::error(409, "Conflict"),
            None,
        ),
    ] {
        let list = Expect::get(LIST).answer(Answer::list(&[found]));
        let post = created.map(|answer| Expect::post(LIST).answer(answer));
        let calls = [list, delete.clone().answer(deleted)]
            .into_iter()
            .chain(post);
        let scenario = Scenario::new(calls);
        let progress = run(&scenario.client(), &["secrets".to_owned()], "f", now()).await;
        assert_eq!(
            progress.unwrap(),
            Progress::Running("secrets (0 of 1 done)".to_owned())
        );
        scenario.finish();
    }
}

#[tokio::test]
async fn migrations_of_others_are_left_alone() {
    let found = migration("encryption-migration-core-secrets", None, &json!([]));
    let scenario = Scenario::new([Expect::get(LIST).answer(Answer::list(&[found]))]);
    let progress = run(&scenario.client(), &["secrets".to_owned()], "f", now()).await;
    assert!(matches!(progress, Ok(Progress::Failed(what)) if what.contains("delete it")));
    scenario.finish();
}

#[tokio::test]
async fn migrations_wait_until_they_are_served() {
    let scenario = Scenario::new([Expect::get(LIST).answer(Answer::error(404, "NotFound"))]);
    let progress = run(&scenario.client(), &["secrets".to_owned()], "f", now()).await;
    assert!(matches!(progress, Ok(Progress::Running(what)) if what.contains("does not serve")));
    scenario.finish();
}
