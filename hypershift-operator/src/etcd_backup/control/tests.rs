//! The order of requests: what is read, and that a backup is final only after its result is written.

use api::annotations::{PRIVATE_CAPI_TYPES, SCOPE};
use kube::runtime::watcher::Event;
use ownership::Scope;
use payload::Releases;
use prometheus_client::registry::Registry;
use serde_json::Value;
use support::reconcile::{Report as _, Retry};
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::config::Config;
use crate::etcd_backup::credentials::CONSUMERS;
use crate::etcd_backup::job::Images;
use crate::facts::fixture;
use crate::metrics::Metrics;
use crate::names::{CLUSTER, MANAGED_BY, OPERATOR};

const NAMESPACE: &str = "/api/v1/namespaces/clusters-one";
const ONE: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/hostedclusters/one";
const JOBS: &str = "/apis/batch/v1/namespaces/hypershift/jobs";
const PODS: &str = "/api/v1/namespaces/hypershift/pods";
const HCP: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hostedcontrolplanes/one";
const ETCD: &str = "/apis/apps/v1/namespaces/clusters-one/statefulsets/etcd";
const SECRET: &str = "/api/v1/namespaces/hypershift/secrets/store";
const PULL_SECRET: &str = "/api/v1/namespaces/clusters/secrets/pull";
const BACKUPS: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-one/hcpetcdbackups";
const ACCOUNT: &str = "/api/v1/namespaces/hypershift/serviceaccounts/etcd-backup-job";
/// What lets a Job in to etcd, as it is deleted.
const ACCESS: [&str; 3] = [
    "/apis/networking.k8s.io/v1/namespaces/clusters-one/networkpolicies/allow-etcd-backup",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/clusters-one/rolebindings/etcd-backup-job",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/clusters-one/roles/etcd-backup-job",
];
const JOB: &str = "etcd-backup-nightly-0f1e2d3c";
const UID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const URL: &str = "s3://backups/one/1893456000.db";

fn missing() -> Answer {
    Answer::error(404, "NotFound")
}

fn named(name: &str, uid: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": uid, "resourceVersion": "7" } })
}

fn backup(name: &str, uid: &str, completed: Option<(&str, &str)>) -> DynamicObject {
    let mut backup = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HCPEtcdBackup",
        "metadata": {
            "namespace": "clusters-one", "name": name, "uid": uid, "resourceVersion": "7",
            "generation": 1, "creationTimestamp": "2030-01-01T00:00:00Z",
        },
        "spec": { "storage": { "storageType": "S3", "s3": {
            "bucket": "backups", "region": "eu-west-1", "keyPrefix": "one",
            "kmsKeyARN": "arn:aws:kms:eu-west-1:123456789012:key/k",
            "credentials": { "name": "store" },
        }}},
    });
    if let Some((status, reason)) = completed {
        backup["status"] = json!({ "conditions": [{
            "type": "BackupCompleted", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }]});
    }
    serde_json::from_value(backup).unwrap()
}

fn nightly() -> DynamicObject {
    backup("nightly", UID, None)
}

fn cluster(annotations: &Value) -> Value {
    let mut cluster = json!(fixture::hosted_cluster("aws"));
    cluster["metadata"]["annotations"] = annotations.clone();
    cluster["metadata"]["resourceVersion"] = json!("9");
    cluster
}

fn owned_by(owner: &str) -> Answer {
    let mut namespace = named("clusters-one", "ns");
    namespace["metadata"]["annotations"] = json!({ CLUSTER: owner });
    Answer::ok(&namespace)
}

/// The reads that find out whose control plane it is.
fn owner() -> Vec<Expect> {
    let private = cluster(&json!({ PRIVATE_CAPI_TYPES: "true" }));
    vec![
        Expect::get(NAMESPACE).answer(owned_by("clusters/one")),
        Expect::get(NAMESPACE).answer(owned_by("clusters/one")),
        Expect::get(ONE).answer(Answer::ok(&private)),
    ]
}

fn job(uid: &str, condition: &str) -> Value {
    json!({
        "metadata": { "name": JOB, "uid": "j", "annotations": { "hypershift.openshift.io/backup-uid": uid } },
        "status": { "conditions": [{ "type": condition, "status": "True", "reason": "Why" }] },
    })
}

fn control_plane() -> Answer {
    let mut control_plane = named("one", "hcp");
    control_plane["metadata"]["namespace"] = json!("clusters-one");
    Answer::ok(&control_plane)
}

fn etcd(ready: i32) -> Answer {
    let mut etcd = named("etcd", "etcd");
    etcd["spec"] = json!({ "replicas": 3, "selector": {}, "serviceName": "etcd", "template": {} });
    etcd["status"] = json!({ "replicas": 3, "readyReplicas": ready });
    Answer::ok(&etcd)
}

fn secret(annotations: &Value) -> Answer {
    let mut secret = named("store", "s");
    secret["metadata"]["annotations"] = annotations.clone();
    // A role of AWS.
    secret["data"] =
        json!({ "credentials": "YXJuOmF3czppYW06OjEyMzQ1Njc4OTAxMjpyb2xlL2JhY2t1cHM=" });
    Answer::ok(&secret)
}

/// The reads of a backup that is not complete.
fn reads(jobs: &[Value], control_plane: Answer, etcd: Answer, secret: Answer) -> Vec<Expect> {
    let mut all = owner();
    all.extend([
        Expect::get(JOBS).answer(Answer::list(jobs)),
        Expect::get(HCP).answer(control_plane),
        Expect::get(ETCD).answer(etcd),
        Expect::get(SECRET).answer(secret),
    ]);
    all
}

fn permitted() -> Answer {
    secret(&json!({ CONSUMERS: "clusters" }))
}

/// Access to etcd is looked for, and deleted if it is there.
fn clean_up(exists: bool) -> Vec<Expect> {
    let of = |path: &&str| {
        let name = path.rsplit('/').next().unwrap();
        let mut found = named(name, "access");
        found["metadata"]["labels"] = json!({ MANAGED_BY: OPERATOR });
        if !exists {
            return vec![Expect::get(path).answer(missing())];
        }
        let precondition = json!({ "preconditions": { "uid": "access" } });
        vec![
            Expect::get(path).answer(Answer::ok(&found)),
            Expect::delete(path)
                .body(precondition)
                .answer(Answer::ok(&found)),
        ]
    };
    ACCESS.iter().flat_map(of).collect()
}

/// The condition of the HostedControlPlane.
fn reported(status: &str, reason: &str) -> Expect {
    Expect::patch(&format!("{HCP}/status"))
        .body(json!({
            "metadata": { "uid": "hcp", "resourceVersion": "7" },
            "status": { "conditions": [{
                "type": "EtcdBackupSucceeded", "status": status, "reason": reason,
            }]},
        }))
        .answer(control_plane())
}

/// The status of the backup.
fn written(status: &str, reason: &str, more: &Value) -> Expect {
    let mut body = json!({
        "metadata": { "uid": UID, "resourceVersion": "7" },
        "status": { "conditions": [{ "type": "BackupCompleted", "status": status, "reason": reason }] },
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        body["status"][field.as_str()] = value.clone();
    }
    Expect::patch(&format!("{BACKUPS}/nightly/status"))
        .body(body)
        .answer(Answer::ok(&json!(nightly())))
}

fn context(scope: Scope, keep: Option<usize>, scenario: &Scenario) -> Arc<Context> {
    let mut config = Config::for_tests(scope);
    config.etcd_backups.max_count = keep;
    let releases = Releases::new(config.releases.clone()).unwrap();
    let metrics = Metrics::new(&mut Registry::default());
    let ctx = Context::for_tests(&config, scenario.client(), releases, &metrics);
    ctx.cache.sync(&[]);
    Arc::new(ctx)
}

/// Reconciles the backup `nightly`, where these are watched.
async fn reconcile(
    scope: Scope,
    watched: &[DynamicObject],
    requests: Vec<Expect>,
) -> Result<Action, Error> {
    let scenario = Scenario::new(requests);
    let ctx = context(scope, Some(1), &scenario);
    let mut writer = Writer::new(resource());
    for backup in watched {
        writer.apply_watcher_event(&Event::Apply(backup.clone()));
    }
    let controller = Controller {
        ctx: &ctx,
        store: writer.as_reader(),
    };
    let key = ObjectKey::new("clusters-one", "nightly");
    let result = controller.reconcile(&key).await;
    scenario.finish();
    result
}

/// Check T27: who may create HCPEtcdBackups in a namespace does not decide whose control plane is there.
#[tokio::test]
async fn a_backup_belongs_to_the_owner_of_its_namespace() {
    let found = |owner: &str| Expect::get(NAMESPACE).answer(owned_by(owner));
    let failed = || written("False", "BackupFailed", &json!({}));
    let other = cluster(&json!({ SCOPE: "legacy" }));
    let other = || Expect::get(ONE).answer(Answer::ok(&other));
    let gone = || Expect::get(ONE).answer(missing());
    let own = || found("clusters/one");
    let end = Action::await_change();
    for (name, scope, requests, expected) in [
        (
            "no namespace",
            Scope::Private,
            vec![Expect::get(NAMESPACE).answer(missing()), failed()],
            end,
        ),
        (
            "a namespace without an owner",
            Scope::Private,
            vec![
                Expect::get(NAMESPACE).answer(Answer::ok(&named("clusters-one", "ns"))),
                failed(),
            ],
            end,
        ),
        (
            "a cluster whose control plane is elsewhere",
            Scope::Private,
            vec![found("clusters/two"), failed()],
            end,
        ),
        (
            "a namespace that has another owner now",
            Scope::Private,
            vec![own(), found("clusters-x/one"), failed()],
            end,
        ),
        (
            "no HostedCluster",
            Scope::Private,
            vec![own(), own(), gone(), failed()],
            end,
        ),
        (
            "a cluster of the other operator",
            Scope::Private,
            vec![own(), own(), other()],
            Action::requeue(RESYNC),
        ),
        (
            "an operator that goes when no cluster needs it",
            Scope::Legacy,
            vec![own(), own(), gone()],
            Action::requeue(RESYNC),
        ),
    ] {
        let result = reconcile(scope, &[nightly()], requests).await;
        assert_eq!(result.unwrap(), expected, "{name}");
    }
}

#[tokio::test]
async fn each_observation_is_reported_in_order() {
    let none = json!({});
    let own = |condition: &str| [job(UID, condition)];
    let pod = |code: i32| {
        json!({
            "metadata": { "name": "p", "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": "j",
            }]},
            "status": { "containerStatuses": [{
                "name": "upload", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": code, "message": URL } },
            }]},
        })
    };
    let pods = |code: i32| Expect::get(PODS).answer(Answer::list(&[pod(code)]));
    let ok = |jobs: &[Value]| reads(jobs, control_plane(), etcd(3), permitted());
    let key = json!({ "aws": { "kmsKeyARN": "arn:aws:kms:eu-west-1:123456789012:key/k" } });
    let result = json!({ "snapshotURL": URL, "encryptionMetadata": key });
    let url = Expect::patch(&format!("{ONE}/status"))
        .body(json!({
            "metadata": { "resourceVersion": "9" },
            "status": { "lastSuccessfulEtcdBackupURL": URL },
        }))
        .answer(Answer::ok(&cluster(&none)));
    let failed = || {
        [
            reported("False", "BackupFailed"),
            written("False", "BackupFailed", &json!({})),
        ]
    };
    let again = Action::requeue(POLL_INTERVAL);
    let end = Action::await_change();
    let table: Vec<(&str, Vec<Expect>, Vec<Expect>, Action)> = vec![
        (
            "no HostedControlPlane",
            reads(&[], missing(), etcd(3), permitted()),
            [
                clean_up(false),
                vec![written("False", "BackupFailed", &none)],
            ]
            .concat(),
            end,
        ),
        (
            "etcd is not healthy",
            reads(&[], control_plane(), etcd(2), permitted()),
            vec![written("False", "EtcdUnhealthy", &none)],
            again,
        ),
        (
            "another Job runs, and keeps its access",
            ok(&[job("another", "Suspended")]),
            vec![written("False", "BackupRejected", &none)],
            end,
        ),
        (
            "a Secret of the operator",
            reads(&[], control_plane(), etcd(3), secret(&none)),
            [clean_up(false), failed().to_vec()].concat(),
            end,
        ),
        (
            "no pull secret",
            ok(&[]),
            [
                vec![Expect::get(PULL_SECRET).answer(missing())],
                clean_up(false),
                failed().to_vec(),
            ]
            .concat(),
            end,
        ),
        (
            "the Job runs",
            ok(&own("Suspended")),
            vec![
                reported("False", "BackupInProgress"),
                written("False", "BackupInProgress", &none),
            ],
            again,
        ),
        (
            "the Job is complete",
            ok(&own("Complete")),
            [
                vec![pods(0)],
                clean_up(true),
                vec![
                    url,
                    reported("True", "BackupSucceeded"),
                    written("True", "BackupSucceeded", &result),
                ],
            ]
            .concat(),
            end,
        ),
        (
            "the Job failed",
            ok(&own("Failed")),
            [vec![pods(1)], clean_up(true), failed().to_vec()].concat(),
            end,
        ),
    ];
    for (name, reads, writes, expected) in table {
        let requests = reads.into_iter().chain(writes).collect();
        let result = reconcile(Scope::Private, &[nightly()], requests).await;
        assert_eq!(result.unwrap(), expected, "{name}");
    }
}

/// The HostedCluster has changed in between: it is read again, and the backup is not final yet.
#[tokio::test]
async fn a_backup_is_not_final_before_the_url_is_written() {
    let pod = json!({
        "metadata": { "name": "p", "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": "j",
        }]},
        "status": { "containerStatuses": [{
            "name": "upload", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": { "exitCode": 0, "message": URL } },
        }]},
    });
    let requests = [
        reads(
            &[job(UID, "Complete")],
            control_plane(),
            etcd(3),
            permitted(),
        ),
        vec![Expect::get(PODS).answer(Answer::list(&[pod]))],
        clean_up(false),
        vec![Expect::patch(&format!("{ONE}/status")).answer(Answer::error(409, "Conflict"))],
    ];
    let result = reconcile(Scope::Private, &[nightly()], requests.concat()).await;
    assert_eq!(result.unwrap_err().retry(), Retry::AtOnce);
}

#[tokio::test]
async fn access_stays_while_another_backup_waits() {
    let requests = [
        reads(&[], control_plane(), etcd(3), secret(&json!({}))),
        vec![
            reported("False", "BackupFailed"),
            written("False", "BackupFailed", &json!({})),
        ],
    ];
    let watched = [nightly(), backup("another", "a", None)];
    let result = reconcile(Scope::Private, &watched, requests.concat()).await;
    assert_eq!(result.unwrap(), Action::await_change());
}

#[tokio::test]
async fn a_final_backup_cleans_up_and_deletes_the_oldest() {
    let succeeded = Some(("True", "BackupSucceeded"));
    let mut old = backup("old", "o", succeeded);
    let earlier = json!("2029-01-01T00:00:00Z");
    old.metadata.creation_timestamp = serde_json::from_value(earlier).unwrap();
    let mut foreign = backup("elsewhere", "e", succeeded);
    foreign.metadata.namespace = Some("clusters-two".to_owned());
    let watched = [backup("nightly", UID, succeeded), old, foreign];
    let requests = [
        owner(),
        vec![Expect::get(JOBS).answer(Answer::list(&[]))],
        clean_up(true),
        vec![
            Expect::delete(&format!("{BACKUPS}/old"))
                .body(json!({ "preconditions": { "uid": "o" } }))
                .answer(missing()),
        ],
    ];
    let result = reconcile(Scope::Private, &watched, requests.concat()).await;
    assert_eq!(result.unwrap(), Action::await_change());
}

#[tokio::test]
async fn a_backup_that_was_deleted_leaves_no_access() {
    let requests = [
        owner(),
        vec![Expect::get(JOBS).answer(Answer::list(&[job(UID, "Failed")]))],
        clean_up(true),
    ];
    let result = reconcile(Scope::Private, &[], requests.concat()).await;
    assert_eq!(result.unwrap(), Action::await_change());
    // Its Job is still running.
    let requests = [
        owner(),
        vec![Expect::get(JOBS).answer(Answer::list(&[job(UID, "Suspended")]))],
    ];
    let result = reconcile(Scope::Private, &[], requests.concat()).await;
    assert_eq!(result.unwrap(), Action::await_change());
}

/// Check T27: an object of another HostedCluster is not written.
#[tokio::test]
async fn a_job_is_created_after_what_it_needs() {
    let ok = |path: &str| Answer::ok(&named(path.rsplit('/').next().unwrap(), "u"));
    let applied = |path: &str| {
        vec![
            Expect::get(path).answer(missing()),
            Expect::get(path).answer(missing()),
            Expect::patch(path).answer(ok(path)),
        ]
    };
    let foreign = |path: &str| {
        let mut found = named("x", "u");
        found["metadata"]["annotations"] = json!({ CLUSTER: "clusters-x/one" });
        vec![Expect::get(path).answer(Answer::ok(&found))]
    };
    let [policy, binding, role] = ACCESS;
    let before = || {
        [
            applied(ACCOUNT),
            applied(role),
            applied(binding),
            applied(policy),
        ]
        .concat()
    };
    let created = |answer: Answer| {
        let metadata = json!({ "name": JOB, "annotations": { CLUSTER: "clusters/one" } });
        Expect::post(JOBS)
            .body(json!({ "kind": "Job", "metadata": metadata }))
            .answer(answer)
    };
    let conflict = || created(Answer::error(409, "AlreadyExists"));
    let path = format!("{JOBS}/{JOB}");
    let existing = |uid: &str| Expect::get(&path).answer(Answer::ok(&job(uid, "Suspended")));
    let table: Vec<(&str, Vec<Expect>, Option<&str>)> = vec![
        (
            "all is created",
            [before(), vec![created(ok(JOB))]].concat(),
            None,
        ),
        (
            "an answer was lost",
            [before(), vec![conflict(), existing(UID)]].concat(),
            None,
        ),
        (
            "another Job of the name",
            [before(), vec![conflict(), existing("another")]].concat(),
            Some("is not of this backup"),
        ),
        (
            "a service account of a HostedCluster",
            foreign(ACCOUNT),
            Some("ServiceAccount hypershift/etcd-backup-job belongs to another HostedCluster"),
        ),
        (
            "a role of another HostedCluster",
            [applied(ACCOUNT), foreign(role)].concat(),
            Some("Role clusters-one/etcd-backup-job belongs to another HostedCluster"),
        ),
    ];
    let images = Images {
        operator: "operator".to_owned(),
        etcd: "etcd".to_owned(),
    };
    let credentials = Credentials::AwsSts {
        role: "arn:aws:iam::123456789012:role/a".to_owned(),
    };
    let backup: HcpEtcdBackup = observe::typed(&nightly(), "HCPEtcdBackup").unwrap();
    for (name, requests, expected) in table {
        let scenario = Scenario::new(owner().into_iter().chain(requests));
        let ctx = context(Scope::Private, None, &scenario);
        let Owner::Cluster(cluster) = observe::owner("clusters-one", &ctx).await.unwrap() else {
            panic!("{name}: no cluster");
        };
        let input = Input {
            backup: &backup,
            cluster: &cluster.id,
            namespace: "hypershift",
            images: &images,
            credentials: &credentials,
            user: None,
        };
        let problem = objects::start(&input, &cluster, &ctx).await.unwrap();
        scenario.finish();
        match (&problem, expected) {
            (None, None) => {}
            (Some(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
            _ => panic!("{name}: {problem:?}"),
        }
    }
}
