//! Encryption at rest: golden files of the changes to the API server for each provider.

mod rotation;

use std::collections::BTreeSet;
use std::fs;

use control_plane_operator::components;
use control_plane_operator::render::{Input, yaml};
use serde_json::{Value, json};

use crate::input;

const AWS_KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/active";

/// The input with encryption.
fn encrypted(encryption: &Value) -> Input {
    let mut input = input::base();
    let mut hcp = json!(input.hosted_control_plane);
    hcp["spec"]["secretEncryption"] = encryption.clone();
    hcp["metadata"]["annotations"] = json!({
        "hypershift.openshift.io/ibmcloud-kms-provider-image": "images.example.com/key-protect:1",
    });
    input.hosted_control_plane = serde_json::from_value(hcp).unwrap();
    for name in ["aws", "azure"] {
        let name = format!("{name}-kms-encryption-provider");
        input.release.images.insert(name.clone(), name);
    }
    for (name, key) in [("new", "MDEyMzQ1Njc4OWFiY2RlZg=="), ("old", "b2xk")] {
        input.objects.insert(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": name }, "data": { "key": key },
        }));
    }
    input
}

fn kms(provider: &str, field: &str, settings: &Value) -> Value {
    json!({ "type": "kms", "kms": { "provider": provider, field: settings } })
}

/// Each configuration, and its golden file.
fn cases() -> Vec<(&'static str, Value)> {
    let azure_key =
        |version: &str| json!({ "keyVaultName": "vault", "keyName": "key", "keyVersion": version });
    let ibm_key = |version: i64| {
        json!({
            "crkID": format!("root-{version}"), "instanceID": "instance", "correlationID": "correlation",
            "url": "https://kms.example.com", "keyVersion": version,
        })
    };
    let certificate = json!({
        "clientID": "00000000-0000-0000-0000-000000000001",
        "objectEncoding": "utf-8",
        "credentialsSecretName": "kms",
    });
    let identity = json!({ "clientID": "00000000-0000-0000-0000-000000000002" });
    vec![
        (
            "aescbc",
            json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "new" } } }),
        ),
        (
            "aescbc-rotating",
            json!({ "type": "aescbc", "aescbc": {
                "activeKey": { "name": "new" }, "backupKey": { "name": "old" },
            } }),
        ),
        (
            "aws",
            kms(
                "AWS",
                "aws",
                &json!({
                    "region": "us-east-1",
                    "activeKey": { "arn": AWS_KEY },
                    "auth": { "awsKms": "arn:aws:iam::123456789012:role/kms" },
                }),
            ),
        ),
        (
            "aws-rotating",
            kms(
                "AWS",
                "aws",
                &json!({
                    "region": "us-east-1",
                    "activeKey": { "arn": AWS_KEY },
                    "backupKey": { "arn": "arn:aws:kms:us-east-1:123456789012:key/old" },
                    "auth": { "awsKms": "arn:aws:iam::123456789012:role/kms" },
                }),
            ),
        ),
        (
            "azure-managed",
            kms(
                "Azure",
                "azure",
                &json!({
                    "activeKey": azure_key("2"), "backupKey": azure_key("1"), "kms": certificate,
                }),
            ),
        ),
        (
            "azure-workload",
            kms(
                "Azure",
                "azure",
                &json!({ "activeKey": azure_key("2"), "workloadIdentity": identity }),
            ),
        ),
        (
            "ibm-cloud-managed",
            kms(
                "IBMCloud",
                "ibmcloud",
                &json!({
                    "region": "eu-de",
                    "auth": { "type": "Managed", "managed": {} },
                    "keyList": [ibm_key(1)],
                }),
            ),
        ),
        (
            "ibm-cloud-unmanaged",
            kms(
                "IBMCloud",
                "ibmcloud",
                &json!({
                    "region": "eu-de",
                    "auth": { "type": "Unmanaged", "unmanaged": { "credentials": { "name": "api-key" } } },
                    "keyList": [ibm_key(2), ibm_key(1)],
                }),
            ),
        ),
    ]
}

/// Returns an object of the API server's component.
fn object(input: &Input, kind: &str, name: &str) -> Value {
    let mut all = components::all().iter();
    let component = all.find(|it| it.name == "kube-apiserver").unwrap();
    let files = input.component(component).unwrap();
    let mut objects = files.into_iter().map(|file| file.object);
    let found = objects.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_default()
}

/// Returns entries of one list that are not in the other, by name.
fn added(with: &Value, without: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let before: BTreeSet<String> = list(without)
        .iter()
        .map(|it| it["name"].to_string())
        .collect();
    let all = list(with).into_iter();
    all.filter(|it| !before.contains(&it["name"].to_string()))
        .collect()
}

/// Returns all additions of encryption as one document.
fn addition(input: &Input) -> Value {
    let pod = |input: &Input| {
        object(input, "Deployment", "kube-apiserver")["spec"]["template"]["spec"].clone()
    };
    let (with, without) = (pod(input), pod(&input::base()));
    let secret = object(input, "Secret", "kas-secret-encryption-config");
    let config = &secret["data"]["config.yaml"];
    let config = base64_text(config.as_str().unwrap());
    let (server, plain) = (&with["containers"][0], &without["containers"][0]);
    json!({
        "configuration": serde_saphyr::from_str::<Value>(&config).unwrap(),
        "containers": added(&with["containers"], &without["containers"]),
        "volumes": added(&with["volumes"], &without["volumes"]),
        "server": {
            "args": server["args"],
            "alive": server["livenessProbe"]["httpGet"]["path"],
            "volumeMounts": added(&server["volumeMounts"], &plain["volumeMounts"]),
        },
    })
}

fn base64_text(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text);
    String::from_utf8(bytes.unwrap()).unwrap()
}

#[test]
fn encryption_matches_golden_files() {
    let directory = input::root().join("tests/golden-encryption");
    for (name, encryption) in cases() {
        let text = yaml(&addition(&encrypted(&encryption)));
        let path = directory.join(format!("{name}.yaml"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            text,
            golden,
            "{}: UPDATE_GOLDEN=1 writes it",
            path.display()
        );
    }
}

#[test]
fn encryption_flag_is_set_only_if_configured() {
    let config = |input: &Input| {
        let map = object(input, "ConfigMap", "kas-config");
        let text = map["data"]["config.json"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let argument = "encryption-provider-config";
    assert!(config(&input::base())["apiServerArguments"][argument].is_null());
    for (name, encryption) in cases() {
        let file = &config(&encrypted(&encryption))["apiServerArguments"][argument];
        assert_eq!(
            file,
            &json!(["/etc/kubernetes/secret-encryption/config.yaml"]),
            "{name}"
        );
    }
}

/// Objects that were encrypted by another version can be decrypted only if provider names are the same.
#[test]
fn key_names_are_stable() {
    let name = |way: &str, pointer: &str| {
        let (_, encryption) = cases().into_iter().find(|(name, _)| *name == way).unwrap();
        let addition = addition(&encrypted(&encryption));
        let providers = &addition["configuration"]["resources"][0]["providers"];
        providers
            .pointer(pointer)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    // FNV-1 of "0123456789abcdef" and of the ARN, FNV-1a of the key as JSON.
    assert_eq!(
        name("aescbc", "/0/aescbc/keys/0/name"),
        format!("key-{}", fnv1(b"0123456789abcdef"))
    );
    assert_eq!(
        name("aws", "/0/kms/name"),
        format!("awskmskey-{}", fnv1(AWS_KEY.as_bytes()))
    );
    assert!(name("azure-managed", "/0/kms/name").starts_with("azure-"));
    assert_ne!(
        name("azure-managed", "/0/kms/name"),
        name("azure-managed", "/1/kms/name")
    );
    assert_eq!(name("ibm-cloud-managed", "/0/kms/name"), "ibmv2");
}

fn fnv1(bytes: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in bytes {
        hash = hash.wrapping_mul(0x0100_0193);
        hash ^= u32::from(*byte);
    }
    hash
}

#[test]
fn missing_plugin_images_are_reported_with_a_hint() {
    let (_, encryption) = cases().pop().unwrap();
    let mut input = encrypted(&encryption);
    input.hosted_control_plane.metadata.annotations = None;
    let error = error(&input);
    assert!(error.contains("ibmcloud-kms-provider-image"), "{error}");
}

fn error(input: &Input) -> String {
    let mut all = components::all().iter();
    let component = all.find(|it| it.name == "kube-apiserver").unwrap();
    input.component(component).unwrap_err().to_string()
}
