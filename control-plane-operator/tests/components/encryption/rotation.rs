//! Rotation of keys: a key is read by all API servers before it encrypts, and is read until nothing needs it.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_operator::render::Input;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{encrypted, fnv1, kms, object};
use crate::input;

const OLD: &[u8] = b"old";
const NEW: &[u8] = b"0123456789abcdef";
const HASH: &str = "kube-apiserver.hypershift.openshift.io/encryption-config-hash";
const SECRET: &str = "kas-secret-encryption-config";
const PROMOTED: &str = "WritePromote";

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn name(key: &[u8]) -> String {
    format!("key-{}", fnv1(key))
}

/// A key in the status; `old` and `new` are Secrets of the input.
fn key(secret: &str) -> Value {
    let bytes = if secret == "old" { OLD } else { NEW };
    json!({ "provider": "AESCBC", "aescbc": { "secret": { "name": secret }, "dataHash": sha256(bytes) } })
}

fn fingerprint(key: &Value) -> String {
    let text = match key["provider"].as_str() {
        Some("AWS") => key["aws"]["arn"].as_str().unwrap().to_owned(),
        _ => format!(
            "{}/{}",
            key["aescbc"]["secret"]["name"].as_str().unwrap(),
            key["aescbc"]["dataHash"].as_str().unwrap()
        ),
    };
    sha256(text.as_bytes())
}

/// A rotation with this state in its history.
fn rotation(from: &Value, to: &Value, state: &str) -> Value {
    let entry =
        |key: &Value| json!({ "provider": key["provider"], "fingerprint": fingerprint(key) });
    json!({ "activeKey": from, "targetKey": to, "history": [{
        "state": state, "startedTime": "2030-01-01T00:00:00Z", "from": entry(from), "to": entry(to),
    }] })
}

/// The input with this status, live providers, and Deployment of the API servers.
fn with(encryption: &Value, status: &Value, live: Option<&Value>, servers: &Value) -> Input {
    let mut input = encrypted(encryption);
    let mut hcp = json!(input.hosted_control_plane);
    hcp["status"] =
        json!({ "ready": true, "initialized": true, "externalManagedControlPlane": true });
    hcp["status"]["secretEncryption"] = status.clone();
    input.hosted_control_plane = serde_json::from_value(hcp).unwrap();
    let Some(providers) = live else {
        return input;
    };
    let config = config(providers);
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET },
        "data": { "config.yaml": STANDARD.encode(&config) },
    }));
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "kube-apiserver", "generation": 2 },
        "spec": { "replicas": 3, "selector": {}, "template": { "metadata": { "annotations": {
            HASH: format!("sha256:{}", sha256(config.as_bytes())),
        } } } },
        "status": {
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        },
    });
    for (pointer, value) in servers.as_object().unwrap() {
        *deployment.pointer_mut(pointer).unwrap() = value.clone();
    }
    input.objects.insert(deployment);
    input
}

fn config(providers: &Value) -> String {
    json!({ "kind": "EncryptionConfiguration", "resources": [
        { "resources": ["secrets"], "providers": providers },
    ] })
    .to_string()
}

fn live(keys: &[&[u8]]) -> Value {
    let keys = keys.iter();
    let keys: Vec<_> = keys
        .map(|key| json!({ "name": name(key), "secret": STANDARD.encode(key) }))
        .collect();
    json!([{ "aescbc": { "keys": keys } }, { "identity": {} }])
}

fn rendered(input: &Input) -> Value {
    let secret = object(input, "Secret", SECRET);
    let text = super::base64_text(secret["data"]["config.yaml"].as_str().unwrap());
    serde_saphyr::from_str(&text).unwrap()
}

fn keys(input: &Input) -> Vec<String> {
    let config = rendered(input);
    let keys = config["resources"][0]["providers"][0]["aescbc"]["keys"].as_array();
    let names = keys
        .unwrap()
        .iter()
        .map(|key| key["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

fn aescbc() -> Value {
    json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "new" } } })
}

fn aws() -> Value {
    kms(
        "AWS",
        "aws",
        &json!({
            "region": "us-east-1", "activeKey": { "arn": "arn:new" }, "auth": { "awsKms": "arn:role" },
        }),
    )
}

fn arn(arn: &str) -> Value {
    json!({ "provider": "AWS", "aws": { "arn": arn } })
}

#[test]
fn a_key_encrypts_once_all_api_servers_read_it() {
    let to_new = |state: &str| rotation(&key("old"), &key("new"), state);
    let mut other = to_new(PROMOTED);
    other["history"][0]["to"]["fingerprint"] = json!("other");
    let mut done = to_new("Completed");
    done["activeKey"] = done["targetKey"].take();
    let converged = json!({});
    let pending = json!({ "/status/updatedReplicas": 2 });
    let stale = json!({ "/spec/template/metadata/annotations": { HASH: "sha256:other" } });
    let unseen = json!({ "/metadata/generation": 3 });
    let (old, both, new) = (live(&[OLD]), live(&[OLD, NEW]), live(&[NEW, OLD]));
    for (case, status, live, servers, expected) in [
        ("first key", json!(null), None, &converged, vec![NEW]),
        (
            "a new key in the spec",
            json!({ "activeKey": key("old") }),
            Some(&old),
            &converged,
            vec![OLD],
        ),
        (
            "no configuration",
            to_new("ReadOnlyDeploy"),
            None,
            &converged,
            vec![OLD, NEW],
        ),
        (
            "not deployed",
            to_new("ReadOnlyDeploy"),
            Some(&old),
            &converged,
            vec![OLD, NEW],
        ),
        (
            "not deployed, promoted",
            to_new(PROMOTED),
            Some(&old),
            &converged,
            vec![OLD, NEW],
        ),
        (
            "pods may be terminating",
            to_new("ReadOnlyDeploy"),
            Some(&both),
            &converged,
            vec![OLD, NEW],
        ),
        (
            "a replica is old",
            to_new(PROMOTED),
            Some(&both),
            &pending,
            vec![OLD, NEW],
        ),
        (
            "pods have another hash",
            to_new(PROMOTED),
            Some(&both),
            &stale,
            vec![OLD, NEW],
        ),
        (
            "a change is not observed",
            to_new(PROMOTED),
            Some(&both),
            &unseen,
            vec![OLD, NEW],
        ),
        (
            "another rotation",
            other,
            Some(&both),
            &converged,
            vec![OLD, NEW],
        ),
        (
            "read by all",
            to_new(PROMOTED),
            Some(&both),
            &converged,
            vec![NEW, OLD],
        ),
        (
            "it encrypts already",
            to_new("ReadOnlyDeploy"),
            Some(&new),
            &pending,
            vec![NEW, OLD],
        ),
        (
            "migrating",
            to_new("Migrating"),
            Some(&new),
            &converged,
            vec![NEW, OLD],
        ),
        ("completed", done, Some(&new), &converged, vec![NEW]),
    ] {
        let found = keys(&with(&aescbc(), &status, live, servers));
        let expected: Vec<_> = expected.into_iter().map(name).collect();
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn a_key_in_use_is_kept_without_its_secret() {
    let status = rotation(&key("old"), &key("new"), "ReadOnlyDeploy");
    let old = live(&[OLD]);
    for (case, live, data, expected) in [
        (
            "replaced in the Secret",
            Some(&old),
            "bmV3ZXI=",
            Some([OLD, NEW]),
        ),
        ("missing in the Secret", Some(&old), "", Some([OLD, NEW])),
        ("lost", None, "bmV3ZXI=", None),
    ] {
        let mut input = with(&aescbc(), &status, live, &json!({}));
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "old" }, "data": { "key": data },
        }));
        if let Some(expected) = expected {
            assert_eq!(keys(&input), expected.map(name), "{case}");
        } else {
            let error = super::error(&input);
            assert!(
                error.contains("Secret old") && error.contains("put it back"),
                "{error}"
            );
        }
    }
}

#[test]
fn plugins_follow_the_keys_of_a_rotation() {
    let provider = |arn: &str| json!({ "kms": { "apiVersion": "v2", "name": kms_name(arn) } });
    let both = json!([provider("arn:old"), provider("arn:new"), { "identity": {} }]);
    for (state, expected) in [
        ("ReadOnlyDeploy", ["arn:old", "arn:new"]),
        (PROMOTED, ["arn:new", "arn:old"]),
    ] {
        let status = rotation(&arn("arn:old"), &arn("arn:new"), state);
        let input = with(&aws(), &status, Some(&both), &json!({}));
        let pod = object(&input, "Deployment", "kube-apiserver");
        let containers = pod["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap();
        let config = rendered(&input);
        for (number, (role, arn)) in ["active", "backup"].into_iter().zip(expected).enumerate() {
            let name = format!("aws-kms-{role}");
            let container = containers.iter().find(|it| it["name"] == name.as_str());
            assert_eq!(
                container.unwrap()["args"][0],
                format!("--key={arn}"),
                "{state}"
            );
            let provider = &config["resources"][0]["providers"][number]["kms"];
            assert_eq!(provider["name"], kms_name(arn), "{state}");
            assert_eq!(
                provider["endpoint"],
                format!("unix:///var/run/awskms{role}.sock")
            );
        }
    }
}

fn kms_name(arn: &str) -> String {
    format!("awskmskey-{}", fnv1(arn.as_bytes()))
}

#[test]
fn the_version_of_plugins_is_kept() {
    let status = json!({ "activeKey": arn("arn:new") });
    for (version, cache) in [("v1", json!(100)), ("v2", json!(null))] {
        let live = json!([{ "kms": { "apiVersion": version, "name": kms_name("arn:new") } }]);
        let config = rendered(&with(&aws(), &status, Some(&live), &json!({})));
        let provider = &config["resources"][0]["providers"][0]["kms"];
        assert_eq!(provider["apiVersion"], version);
        assert_eq!(provider["cachesize"], cache, "{version}");
    }
}

#[test]
fn a_key_service_replaces_keys_in_secrets() {
    let status = rotation(&key("old"), &arn("arn:new"), "ReadOnlyDeploy");
    let config = rendered(&with(&aws(), &status, None, &json!({})));
    let entry = &config["resources"][0];
    assert_eq!(entry["resources"].as_array().unwrap().len(), 5);
    let providers = &entry["providers"];
    assert_eq!(providers[0]["aescbc"]["keys"][0]["name"], name(OLD));
    assert_eq!(providers[1]["kms"]["name"], kms_name("arn:new"));
    assert!(providers[2]["identity"].is_object());
}

#[test]
fn resources_stay_readable_when_they_are_not_encrypted_any_more() {
    let mut input = with(&aescbc(), &json!(null), None, &json!({}));
    let config = json!({ "resources": [{
        "resources": ["secrets", "configmaps"], "providers": live(&[NEW]),
    }] });
    input.objects.insert(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET },
        "data": { "config.yaml": STANDARD.encode(config.to_string()) },
    }));
    let entries = &rendered(&input)["resources"];
    assert_eq!(entries[0]["resources"], json!(["secrets"]));
    assert_eq!(entries[1]["resources"], json!(["configmaps"]));
    assert!(entries[1]["providers"][0]["identity"].is_object());
    assert_eq!(
        entries[1]["providers"][1]["aescbc"]["keys"][0]["name"],
        name(NEW)
    );
}

/// The annotation says which configuration new pods read, so it has the hash of the one that exists.
#[test]
fn pods_have_the_hash_of_the_live_configuration() {
    let annotation = |input: &Input| {
        let pods = object(input, "Deployment", "kube-apiserver");
        pods["spec"]["template"]["metadata"]["annotations"][HASH].clone()
    };
    let providers = live(&[OLD]);
    let expected = format!("sha256:{}", sha256(config(&providers).as_bytes()));
    let status = json!({ "activeKey": key("new") });
    let with_config = with(&aescbc(), &status, Some(&providers), &json!({}));
    assert_eq!(annotation(&with_config), expected);
    // The first one is created before the pods, which are not replaced when it is there.
    let first = encrypted(&aescbc());
    let secret = object(&first, "Secret", SECRET);
    let text = super::base64_text(secret["data"]["config.yaml"].as_str().unwrap());
    let expected = format!("sha256:{}", sha256(text.as_bytes()));
    assert_eq!(annotation(&first), expected);
    let mut without = with_config;
    without.hosted_control_plane.spec.secret_encryption = None;
    assert_eq!(annotation(&without), Value::Null);
    assert_eq!(annotation(&input::base()), Value::Null);
}

#[test]
fn managed_hsms_have_their_own_names_and_flag() {
    let azure = |type_: &str| {
        let key = json!({ "keyVaultName": "test-kms-keyvault", "keyName": "test-key", "keyVersion": "1" });
        let identity = json!({ "clientID": "00000000-0000-0000-0000-000000000002" });
        let settings =
            json!({ "activeKey": key, "workloadIdentity": identity, "keyVaultType": type_ });
        encrypted(&kms("Azure", "azure", &settings))
    };
    for (type_, is_hsm) in [("KeyVault", false), ("ManagedHSM", true)] {
        let input = azure(type_);
        let name = &rendered(&input)["resources"][0]["providers"][0]["kms"]["name"];
        assert_eq!(name == "azure-b6969f37", !is_hsm, "{type_}: {name}");
        let pods = object(&input, "Deployment", "kube-apiserver");
        let containers = pods["spec"]["template"]["spec"]["containers"].as_array();
        let mut containers = containers.unwrap().iter();
        let plugin = containers.find(|it| it["name"] == "azure-kms-provider-active");
        let args = plugin.unwrap()["args"].as_array().unwrap();
        assert_eq!(args.contains(&json!("--managed-hsm")), is_hsm, "{type_}");
    }
}
