//! Passes on a mock API server of both clusters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::testing::{Answer, Expect, Scenario};

use super::*;
use crate::encryption::{HASH, sha256};

const PODS: &str = "/api/v1/namespaces/ns/pods";
const STATUS: &str =
    "/apis/hypershift.openshift.io/v1beta1/namespaces/ns/hostedcontrolplanes/a/status";
const MIGRATIONS: &str = "/apis/migration.k8s.io/v1alpha1/storageversionmigrations";
const CONDITION: &str = "EtcdDataEncryptionUpToDate";

/// A status of encryption, the keys of the configuration, and what is requested.
struct Case<'a> {
    name: &'a str,
    status: Value,
    live: &'a [&'a str],
    calls: Vec<Expect>,
}

fn key(name: &str) -> Value {
    json!({ "provider": "AESCBC", "aescbc": {
        "secret": { "name": name }, "dataHash": sha256(name.as_bytes()),
    } })
}

fn fingerprint(name: &str) -> String {
    sha256(format!("{name}/{}", sha256(name.as_bytes())).as_bytes())
}

fn entry(state: &str) -> Value {
    let reference = |name| json!({ "provider": "AESCBC", "fingerprint": fingerprint(name) });
    json!({
        "state": state, "startedTime": "2030-01-01T00:00:00Z",
        "from": reference("old"), "to": reference("new"),
    })
}

fn rotating(state: &str) -> Value {
    json!({ "activeKey": key("old"), "targetKey": key("new"), "history": [entry(state)] })
}

fn control_plane(encryption: &Value, status: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
        "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "1", "generation": 3 },
        "spec": {
            "releaseImage": "r", "pullSecret": { "name": "pull-secret" }, "sshKey": { "name": "" },
            "clusterID": "c", "infraID": "a-x7k2p", "issuerURL": "https://issuer.example.com",
            "dns": { "baseDomain": "example.com" }, "networking": {},
            "platform": { "type": "None" }, "etcd": { "managementType": "Managed" }, "services": [],
            "secretEncryption": encryption,
        },
        "status": {
            "ready": true, "initialized": true, "externalManagedControlPlane": true, "secretEncryption": status,
        },
    }))
    .unwrap()
}

fn secret(name: &str, key: &str, value: &str) -> Arc<DynamicObject> {
    let object = json!({
        "metadata": { "name": name }, "data": { key: STANDARD.encode(value) },
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

/// API servers that have all read this configuration.
fn servers(scenario: &Scenario, live: &[&str]) -> Servers {
    let keys: Vec<_> = live
        .iter()
        .map(|key| json!({ "name": key, "secret": STANDARD.encode(key) }))
        .collect();
    let config = json!({ "resources": [{
        "resources": ["secrets"], "providers": [{ "aescbc": { "keys": keys } }, { "identity": {} }],
    }] })
    .to_string();
    let deployment = json!({
        "metadata": { "name": SERVER, "generation": 2 },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": { "app": SERVER } },
            "template": { "metadata": { "annotations": { HASH: hash(config.as_bytes()) } } },
        },
        "status": {
            "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        },
    });
    Servers {
        secrets: vec![secret("new", "key", "new"), secret(SECRET, FILE, &config)],
        deployment: Some(Arc::new(serde_json::from_value(deployment).unwrap())),
        pods: Api::namespaced(scenario.client(), "ns"),
    }
}

async fn run(scenario: &Scenario, object: &DynamicObject, servers: &Servers) -> Result<(), Error> {
    let resource = control_plane::resource();
    let api: Api<DynamicObject> = Api::namespaced_with(scenario.client(), "ns", &resource);
    let change = reconcile(&api, object, servers, &scenario.client()).await;
    change.map(drop)
}

/// A write of the status with this encryption and condition.
#[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
fn put(encryption: Value, status: &str, reason: &str) -> Expect {
    let body = json!({ "status": { "secretEncryption": encryption, "conditions": [{
        "type": CONDITION, "status": status, "reason": reason, "observedGeneration": 3,
    }] } });
    let answer = control_plane(&Value::Null, &Value::Null);
    Expect::put(STATUS)
        .body(body)
        .answer(Answer::ok(&json!(answer)))
}

fn pods(terminating: bool) -> Expect {
    let deleted = terminating.then_some("2030-01-01T00:00:00Z");
    let pod = json!({ "metadata": { "name": "p", "deletionTimestamp": deleted } });
    Expect::get(&format!("{PODS}?labelSelector=app")).answer(Answer::list(&[pod]))
}

fn migrations(conditions: &Value) -> Expect {
    let annotation = format!("encryption-key-{}", fingerprint("new"));
    Expect::get(MIGRATIONS).answer(Answer::list(&[json!({
        "metadata": {
            "name": "encryption-migration-core-secrets",
            "annotations": { "encryption.apiserver.operator.openshift.io/write-key": annotation },
        },
        "status": { "conditions": conditions },
    })]))
}

/// The life of a rotation, in order, with the steps in between that wait.
fn cases() -> Vec<Case<'static>> {
    let case = |name, status, live, calls| Case {
        name,
        status,
        live,
        calls,
    };
    let wait = "ReEncryptionWaitingForKASConvergence";
    let state = |state: &str| json!({ "targetKey": key("new"), "history": [{ "state": state }] });
    let done = json!([{ "type": "Succeeded", "status": "True" }]);
    let created = Answer::ok(&json!({ "metadata": { "name": "m" } }));
    let completed = json!({ "activeKey": key("new"), "history": [{ "state": "Completed" }] });
    vec![
        case(
            "first",
            json!(null),
            &["new"],
            vec![put(
                json!({ "activeKey": key("new") }),
                "True",
                "ReEncryptionCompleted",
            )],
        ),
        case(
            "same key",
            json!({ "activeKey": key("new") }),
            &["new"],
            vec![],
        ),
        case(
            "changed",
            json!({ "activeKey": key("old") }),
            &["old"],
            vec![put(
                state("ReadOnlyDeploy"),
                "False",
                "ReadOnlyRolloutInProgress",
            )],
        ),
        case(
            "not deployed",
            rotating("ReadOnlyDeploy"),
            &["old"],
            vec![put(
                state("ReadOnlyDeploy"),
                "False",
                "ReadOnlyRolloutInProgress",
            )],
        ),
        case(
            "not read by all",
            rotating("ReadOnlyDeploy"),
            &["old", "new"],
            vec![pods(true), put(state("ReadOnlyDeploy"), "False", wait)],
        ),
        case(
            "read by all",
            rotating("ReadOnlyDeploy"),
            &["old", "new"],
            vec![
                pods(false),
                put(state("WritePromote"), "False", "WritePromotionInProgress"),
            ],
        ),
        case(
            "not written by all",
            rotating("WritePromote"),
            &["new", "old"],
            vec![pods(true), put(state("WritePromote"), "False", wait)],
        ),
        case(
            "pods are not listed",
            rotating("WritePromote"),
            &["new", "old"],
            vec![
                Expect::get(PODS).answer(Answer::error(403, "Forbidden")),
                put(state("WritePromote"), "False", wait),
            ],
        ),
        case(
            "written by all",
            rotating("WritePromote"),
            &["new", "old"],
            vec![
                pods(false),
                Expect::get(MIGRATIONS).answer(Answer::list(&[])),
                Expect::post(MIGRATIONS).answer(created),
                put(state("Migrating"), "False", "ReEncryptionInProgress"),
            ],
        ),
        case(
            "migrating",
            rotating("Migrating"),
            &["new", "old"],
            vec![
                pods(false),
                migrations(&json!([])),
                put(state("Migrating"), "False", "ReEncryptionInProgress"),
            ],
        ),
        case(
            "migrated",
            rotating("Migrating"),
            &["new", "old"],
            vec![
                pods(false),
                migrations(&done),
                put(completed, "True", "ReEncryptionCompleted"),
            ],
        ),
    ]
}

#[tokio::test]
async fn a_rotation_is_carried_out_step_by_step() {
    let spec = json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "new" } } });
    for case in cases() {
        let scenario = Scenario::new(case.calls);
        let object = control_plane(&spec, &case.status);
        let servers = servers(&scenario, case.live);
        let done = run(&scenario, &object, &servers).await;
        assert!(done.is_ok(), "{}: {done:?}", case.name);
        scenario.finish();
    }
}

/// The old key is dropped only when the objects have been rewritten: until then, it must not be lost.
#[tokio::test]
async fn a_missing_key_stops_a_rotation() {
    let spec = json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "other" } } });
    let scenario = Scenario::new([]);
    let object = control_plane(&spec, &rotating("Migrating"));
    let error = run(&scenario, &object, &servers(&scenario, &["new", "old"])).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "waiting for Secret other with key key");
    scenario.finish();
}

#[test]
fn an_unchanged_status_is_not_written() {
    let known = json!({ "secretEncryption": rotating("Migrating"), "conditions": [
        { "type": "Available", "status": "True" },
    ] });
    let encryption = serde_json::from_value(rotating("Migrating")).unwrap();
    let change = Change {
        encryption,
        report: Report::Absent,
    };
    let mut status = known.clone();
    super::put(&mut status, &change, Some(3), Timestamp::now());
    assert_eq!(status, known);
    let mut status = json!({});
    let off = Change {
        encryption: SecretEncryptionStatus::default(),
        ..change
    };
    super::put(&mut status, &off, Some(3), Timestamp::now());
    assert_eq!(status, json!({}));
    let mut status = json!({
        "secretEncryption": { "targetKey": key("new") }, "conditions": [{ "type": CONDITION }],
    });
    super::put(&mut status, &off, Some(3), Timestamp::now());
    assert_eq!(status, json!({ "conditions": [] }));
}

/// The resources of the OAuth server's API cannot be rewritten where it is not served.
#[test]
fn resources_follow_authentication() {
    let names = ["secrets", "oauthaccesstokens.oauth.openshift.io"];
    let text = json!({ "resources": [{ "resources": names, "providers": [] }] }).to_string();
    let config = Config::parse(text.as_bytes()).unwrap();
    for (type_, expected) in [("", 2), ("IntegratedOAuth", 2), ("OIDC", 1)] {
        let mut hcp = control_plane::typed(&control_plane(&Value::Null, &Value::Null)).unwrap();
        let configuration = json!({ "authentication": { "type": type_ } });
        hcp.spec.configuration = serde_json::from_value(configuration).unwrap();
        assert_eq!(resources(&config, &hcp).len(), expected, "{type_}");
    }
}
