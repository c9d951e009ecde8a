//! What is checked before anything is written.

use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES};
use api::hypershift::v1beta1::platform::PlatformType;
use serde_json::{Value, json};
use support::testing::{Answer, Expect, Scenario};

use super::super::args::{BackupArgs, RestoreArgs, ScheduleArgs};
use super::super::run;
use super::{backup, compare, parse, restore, schedule};
use crate::hosted::{Hosted, bare_cluster};

const CLUSTER: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/a";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/openshift-adp/deployments";
const APPLICATIONS: &str =
    "/apis/oadp.openshift.io/v1alpha1/namespaces/openshift-adp/dataprotectionapplications";
const VELERO: &str = "/apis/velero.io/v1/namespaces/openshift-adp";
const CONFIG_MAPS: &str = "/api/v1/namespaces/openshift-adp/configmaps";
const PRIVATE_CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.hypershift.openshift.io";

fn cluster(platform: &Value, annotations: &Value) -> Expect {
    let mut cluster = bare_cluster("a");
    cluster["metadata"]["annotations"] = annotations.clone();
    cluster["spec"]["platform"] = platform.clone();
    Expect::get(CLUSTER).answer(Answer::ok(&cluster))
}

fn simple_cluster() -> Expect {
    cluster(&json!({ "type": "None" }), &json!({}))
}

fn deployment(name: &str, ready: i32) -> Expect {
    let object = json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 1,
            "selector": {},
            "template": {},
        },
        "status": { "readyReplicas": ready },
    });
    Expect::get(&format!("{DEPLOYMENTS}/{name}")).answer(Answer::ok(&object))
}

fn application(status: &str, plugins: &[&str]) -> Expect {
    let application = json!({
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "DataProtectionApplication",
        "metadata": { "name": "dpa" },
        "spec": { "configuration": { "velero": { "defaultPlugins": plugins } } },
        "status": { "conditions": [
            { "type": "Reconciled", "status": status, "message": "the bucket is missing" },
        ] },
    });
    Expect::get(APPLICATIONS).answer(Answer::list(&[application]))
}

/// OADP as it should be.
fn healthy() -> Vec<Expect> {
    vec![
        deployment("openshift-adp-controller-manager", 1),
        deployment("velero", 1),
        application("True", &["openshift", "hypershift"]),
    ]
}

fn velero(kind: &str, plural: &str, name: &str, rest: &Value) -> Expect {
    let mut object = json!({
        "apiVersion": "velero.io/v1",
        "kind": kind,
        "metadata": { "namespace": "openshift-adp", "name": name },
    });
    for (field, value) in rest.as_object().unwrap() {
        object[field] = value.clone();
    }
    Expect::get(&format!("{VELERO}/{plural}/{name}")).answer(Answer::ok(&object))
}

/// A creation: first the API server is asked whether it would take the object.
fn creation(collection: &str, object: &Value) -> [Expect; 2] {
    let body =
        json!({ "kind": object["kind"], "metadata": { "name": object["metadata"]["name"] } });
    [format!("{collection}?dryRun=All"), collection.to_owned()].map(|path| {
        Expect::post(&path)
            .body(body.clone())
            .answer(Answer::ok(object))
    })
}

fn scenario(calls: Vec<Expect>) -> (Scenario, Hosted) {
    let scenario = Scenario::new(calls);
    let hosted = Hosted::new(scenario.client());
    (scenario, hosted)
}

async fn create_backup(calls: Vec<Expect>, flags: &[&str]) -> anyhow::Result<()> {
    let (scenario, hosted) = scenario(calls);
    let args: BackupArgs = parse(flags).unwrap();
    let created = run::create_backup(&args, "a-1", &hosted).await;
    scenario.finish();
    created
}

async fn create_restore(calls: Vec<Expect>, flags: &[&str]) -> anyhow::Result<()> {
    let (scenario, hosted) = scenario(calls);
    let args: RestoreArgs = parse(flags).unwrap();
    let created = run::create_restore(&args, "a-2", &hosted).await;
    scenario.finish();
    created
}

/// The error, with its causes.
fn error(result: anyhow::Result<()>) -> String {
    format!("{:#}", result.unwrap_err())
}

#[tokio::test]
async fn a_backup_is_created_after_all_checks() {
    let object = backup(PlatformType::None, &[]).remove(0);
    let mut calls = vec![simple_cluster()];
    calls.extend(healthy());
    calls.extend(creation(&format!("{VELERO}/backups"), &object));
    create_backup(calls, &[]).await.unwrap();
}

#[tokio::test]
async fn a_dry_run_creates_nothing() {
    let object = backup(PlatformType::None, &[]).remove(0);
    let mut calls = vec![simple_cluster()];
    calls.extend(healthy());
    let [dry_run, _] = creation(&format!("{VELERO}/backups"), &object);
    calls.push(dry_run);
    create_backup(calls, &["--dry-run"]).await.unwrap();
}

#[tokio::test]
async fn a_schedule_is_created_while_the_cluster_is_migrated() {
    let flags = ["--schedule=daily"];
    let object = schedule(PlatformType::None, &flags).remove(0);
    let migrating = json!({ MIGRATION_IN_PROGRESS: "true" });
    let mut calls = vec![cluster(&json!({ "type": "None" }), &migrating)];
    calls.extend(healthy());
    calls.extend(creation(&format!("{VELERO}/schedules"), &object));
    let (scenario, hosted) = scenario(calls);
    let args: ScheduleArgs = parse(&flags).unwrap();
    let created = run::create_schedule(&args, "nightly", &hosted).await;
    scenario.finish();
    created.unwrap();
}

#[tokio::test]
async fn what_is_not_ready_is_refused_before_anything_is_written() {
    let absent = |path: &str| Expect::get(path).answer(Answer::error(404, "NotFound"));
    let [manager, velero] =
        ["openshift-adp-controller-manager", "velero"].map(|name| deployment(name, 1));
    let migrating = json!({ MIGRATION_IN_PROGRESS: "true", PRIVATE_CAPI_TYPES: "true" });
    for (calls, expected) in [
        (vec![absent(CLUSTER)], "check --hc-namespace and --hc-name"),
        (
            vec![cluster(&json!({ "type": "None" }), &migrating)],
            "HostedCluster clusters/a is being migrated",
        ),
        (
            vec![
                simple_cluster(),
                absent(&format!("{DEPLOYMENTS}/openshift-adp-controller-manager")),
            ],
            "install OADP",
        ),
        (
            vec![simple_cluster(), manager.clone(), deployment("velero", 0)],
            "Deployment openshift-adp/velero is not ready (0/1 pods)",
        ),
        (
            vec![
                simple_cluster(),
                manager.clone(),
                velero.clone(),
                absent(APPLICATIONS),
            ],
            "there is no DataProtectionApplication",
        ),
        (
            vec![
                simple_cluster(),
                manager.clone(),
                velero.clone(),
                Expect::get(APPLICATIONS).answer(Answer::list(&[])),
            ],
            "there is no DataProtectionApplication",
        ),
        (
            vec![
                simple_cluster(),
                manager.clone(),
                velero.clone(),
                application("False", &["hypershift"]),
            ],
            "openshift-adp/dpa is not reconciled (the bucket is missing)",
        ),
        (
            vec![
                simple_cluster(),
                manager,
                velero,
                Expect::get(APPLICATIONS).answer(Answer::error(403, "Forbidden")),
            ],
            "Forbidden",
        ),
    ] {
        let error = error(create_backup(calls, &[]).await);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn a_backup_that_the_api_server_refuses_leaves_no_config_map() {
    let kubevirt = || cluster(&json!({ "type": "KubeVirt" }), &json!({}));
    let objects = backup(PlatformType::KubeVirt, &[]);
    let [policy, object] = objects.as_slice() else {
        panic!("{objects:?}")
    };
    let name = policy["metadata"]["name"].as_str().unwrap();
    let find = || Expect::get(&format!("{CONFIG_MAPS}/{name}"));
    let absent = || find().answer(Answer::error(404, "NotFound"));
    let [policy_dry_run, policy_created] = creation(CONFIG_MAPS, policy);
    let [dry_run, created] = creation(&format!("{VELERO}/backups"), object);

    let mut calls = vec![kubevirt()];
    calls.extend(healthy());
    let refused = dry_run.clone().answer(Answer::error(422, "Invalid"));
    calls.extend([absent(), policy_dry_run.clone(), refused]);
    let error_of_backup = error(create_backup(calls, &[]).await);
    assert!(
        error_of_backup.contains("Backup openshift-adp/a-1 is refused"),
        "{error_of_backup}"
    );

    let mut calls = vec![kubevirt()];
    calls.extend(healthy());
    calls.extend([
        absent(),
        policy_dry_run,
        dry_run.clone(),
        policy_created,
        created.clone(),
    ]);
    create_backup(calls, &[]).await.unwrap();

    // That of an earlier backup is used again, and that of another owner is kept.
    let mut calls = vec![kubevirt()];
    calls.extend(healthy());
    calls.extend([find().answer(Answer::ok(policy)), dry_run, created]);
    create_backup(calls, &[]).await.unwrap();
    let mut other = policy.clone();
    other["data"] = json!({ "policies.yaml": "version: v1" });
    let mut calls = vec![kubevirt()];
    calls.extend(healthy());
    calls.push(find().answer(Answer::ok(&other)));
    let error_of_policy = error(create_backup(calls, &[]).await);
    assert!(
        error_of_policy.contains("another policy for volumes"),
        "{error_of_policy}"
    );
}

#[tokio::test]
async fn a_restore_needs_a_complete_backup_or_an_active_schedule() {
    let absent = |path: &str| Expect::get(path).answer(Answer::error(404, "NotFound"));
    let of_backup = |rest: &Value| velero("Backup", "backups", "a-1", rest);
    let of_schedule = |rest: &Value| velero("Schedule", "schedules", "nightly", rest);
    let (from_backup, from_schedule) = ("--from-backup=a-1", "--from-schedule=nightly");
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    for (flag, source, expected) in [
        (from_backup, of_backup(&phase("Completed")), None),
        (
            from_backup,
            of_backup(&phase("PartiallyFailed")),
            Some("Backup openshift-adp/a-1 is PartiallyFailed"),
        ),
        (
            from_backup,
            of_backup(&json!({})),
            Some("was not started yet"),
        ),
        (
            from_backup,
            absent(&format!("{VELERO}/backups/a-1")),
            Some("check --from-backup"),
        ),
        (
            from_schedule,
            of_schedule(&json!({ "spec": { "paused": false } })),
            None,
        ),
        (
            from_schedule,
            of_schedule(&json!({ "spec": { "paused": true } })),
            Some("Schedule openshift-adp/nightly is paused"),
        ),
        (
            from_schedule,
            absent(&format!("{VELERO}/schedules/nightly")),
            Some("check --from-schedule"),
        ),
    ] {
        let object = restore(&[flag]).remove(0);
        let mut calls = vec![absent(CLUSTER)];
        calls.extend(healthy());
        calls.push(source);
        if expected.is_none() {
            calls.push(absent(PRIVATE_CRD));
            calls.extend(creation(&format!("{VELERO}/restores"), &object));
        }
        let restored = create_restore(calls, &[flag]).await;
        let found = restored.err().map(|error| format!("{error:#}"));
        compare(&[flag], found, expected);
    }
}
