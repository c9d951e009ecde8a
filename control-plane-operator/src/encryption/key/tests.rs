//! Tests of names and fingerprints of keys.

use serde_json::{Value, json};

use super::*;

fn spec(value: Value) -> SecretEncryptionSpec {
    serde_json::from_value(value).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "calls are shorter")]
fn azure(vault_type: Value) -> SecretEncryptionSpec {
    let key =
        |version: &str| json!({ "keyVaultName": "vault", "keyName": "key", "keyVersion": version });
    spec(
        json!({ "type": "kms", "kms": { "provider": "Azure", "azure": {
        "activeKey": key("2"), "backupKey": key("1"), "keyVaultType": vault_type,
    } } }),
    )
}

fn aws(backup: &str) -> SecretEncryptionSpec {
    spec(json!({ "type": "kms", "kms": { "provider": "AWS", "aws": {
        "region": "r", "activeKey": { "arn": "arn:new" }, "backupKey": { "arn": backup },
        "auth": { "awsKms": "arn:role" },
    } } }))
}

fn ibm_cloud(versions: &[i64]) -> SecretEncryptionSpec {
    let keys = versions.iter().map(|version| {
        json!({ "crkID": "crk", "instanceID": "instance", "correlationID": "c", "url": "https://k", "keyVersion": version })
    });
    spec(
        json!({ "type": "kms", "kms": { "provider": "IBMCloud", "ibmcloud": {
        "region": "r", "auth": { "type": "Managed", "managed": {} }, "keyList": keys.collect::<Vec<_>>(),
    } } }),
    )
}

fn aescbc() -> SecretEncryptionSpec {
    spec(
        json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "new" }, "backupKey": { "name": "old" } } }),
    )
}

fn secrets(name: &str) -> Option<Vec<u8>> {
    (name != "none").then(|| name.as_bytes().to_vec())
}

#[test]
fn hash_matches_fnv1_vectors() {
    for (text, hash) in [
        ("", 0x811c_9dc5),
        ("a", 0x050c_5d7e),
        ("foobar", 0x31f0_b262),
    ] {
        assert_eq!(fnv1(text.as_bytes()), hash, "{text}");
    }
}

#[test]
fn azure_names_match_those_of_existing_clusters() {
    let key = AzureKmsKey {
        key_vault_name: "test-kms-keyvault".to_owned(),
        key_name: "test-key".to_owned(),
        key_version: "1".to_owned(),
    };
    assert_eq!(azure_name(&key, None), "azure-b6969f37");
    let ordinary = azure_name(&key, Some(AzureKeyVaultType::KeyVault));
    assert_eq!(ordinary, "azure-b6969f37");
    let hsm = azure_name(&key, Some(AzureKeyVaultType::ManagedHsm));
    assert_ne!(hsm, "azure-b6969f37");
}

/// Each text identifies the key.
#[test]
fn fingerprints_identify_keys() {
    let data = sha256(b"new");
    for (spec, text) in [
        (aws("arn:old"), "arn:new".to_owned()),
        (azure(Value::Null), "vault/key/2".to_owned()),
        (azure(json!("KeyVault")), "vault/key/2".to_owned()),
        (
            azure(json!("ManagedHSM")),
            "vault/key/2/ManagedHSM".to_owned(),
        ),
        (ibm_cloud(&[7]), "crk/instance/7".to_owned()),
        (ibm_cloud(&[7, 9, 8]), "crk/instance/9".to_owned()),
        (aescbc(), format!("new/{data}")),
    ] {
        let keys = requested(&spec, secrets).unwrap();
        let found = fingerprint(&keys.active, vault_type(&spec));
        assert_eq!(found, sha256(text.as_bytes()), "{text}");
    }
}

#[test]
fn deprecated_backup_keys_are_known() {
    for (spec, expected) in [
        (aws("arn:old"), true),
        (aws(""), false),
        (azure(Value::Null), true),
        (ibm_cloud(&[1, 2]), false),
        (aescbc(), true),
    ] {
        let keys = requested(&spec, secrets).unwrap();
        assert_eq!(keys.backup.is_some(), expected, "{spec:?}");
    }
}

#[test]
fn missing_keys_are_named() {
    for (value, expected) in [
        (
            json!({ "type": "aescbc" }),
            "waiting for field spec.secretEncryption with aescbc",
        ),
        (
            json!({ "type": "aescbc", "aescbc": { "activeKey": { "name": "none" } } }),
            "waiting for Secret none with key key",
        ),
        (
            json!({ "type": "kms" }),
            "waiting for field spec.secretEncryption with kms",
        ),
        (
            json!({ "type": "kms", "kms": { "provider": "AWS" } }),
            "waiting for field spec.secretEncryption.kms with aws",
        ),
    ] {
        let missing = requested(&spec(value), secrets).unwrap_err();
        assert_eq!(missing.to_string(), expected);
    }
    assert!(requested(&ibm_cloud(&[]), secrets).is_err());
}
