//! Whose Secrets may be used, and how.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::*;

const HOME: &str = "hypershift";

pub(super) fn s3() -> HcpEtcdBackupStorage {
    let storage = json!({ "storageType": "S3", "s3": {
        "bucket": "backups", "region": "eu-west-1", "keyPrefix": "one", "credentials": { "name": "store" },
    }});
    serde_json::from_value(storage).unwrap()
}

fn azure_blob() -> HcpEtcdBackupStorage {
    let storage = json!({ "storageType": "AzureBlob", "azureBlob": {
        "container": "backups", "storageAccount": "account1", "keyPrefix": "one", "credentials": { "name": "store" },
    }});
    serde_json::from_value(storage).unwrap()
}

fn cluster() -> Id {
    Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    }
}

fn secret(metadata: &Value, data: &[(&str, &str)]) -> Secret {
    let data = data.iter();
    let data = data.map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret {
        metadata: serde_json::from_value(metadata.clone()).unwrap(),
        data: Some(data.collect()),
        ..Secret::default()
    }
}

fn consumers(list: &str) -> Value {
    json!({ "annotations": { CONSUMERS: list } })
}

/// Check T27.
#[test]
fn only_secrets_that_name_the_cluster_or_its_namespace_are_used() {
    let copy = json!({ "labels": { SHARED: "true" } });
    for (name, metadata, shares, expected) in [
        ("a Secret of the operator", json!({}), false, false),
        ("a Secret of the operator, shared", json!({}), true, false),
        ("its namespace", consumers("clusters"), false, true),
        ("the cluster", consumers("clusters/one"), false, true),
        (
            "a list",
            consumers("clusters-x , clusters/one"),
            false,
            true,
        ),
        ("another cluster", consumers("clusters/two"), false, false),
        ("another namespace", consumers("clusters-x"), false, false),
        (
            "the namespace of its control plane",
            consumers("clusters-one"),
            false,
            false,
        ),
        (
            "a part of its namespace",
            consumers("cluster"),
            false,
            false,
        ),
        ("an empty list", consumers(""), false, false),
        ("a pattern", consumers("*"), false, false),
        ("a copy of the OADP plugin", copy.clone(), false, false),
        ("a copy of the OADP plugin, shared", copy, true, true),
        (
            "another value of the label",
            json!({ "labels": { SHARED: "false" } }),
            true,
            false,
        ),
    ] {
        let secret = secret(&metadata, &[(FILE, "[default]")]);
        let found = resolve(&s3(), Some(&secret), &cluster(), HOME, shares);
        assert_eq!(found.is_ok(), expected, "{name}: {found:?}");
    }
}

/// Check T27.
#[test]
fn a_forbidden_secret_is_reported_like_a_missing_one() {
    let foreign = secret(&consumers("clusters-x"), &[(FILE, "[default]")]);
    let message = |found: Option<&Secret>| resolve(&s3(), found, &cluster(), HOME, false);
    let forbidden = message(Some(&foreign)).unwrap_err();
    assert_eq!(forbidden, message(None).unwrap_err());
    for expected in [
        "Secret hypershift/store",
        "HostedCluster clusters/one",
        "kubectl annotate secret -n hypershift store hypershift.openshift.io/etcd-backup-consumers=clusters",
    ] {
        assert!(forbidden.contains(expected), "{forbidden}");
    }
}

#[test]
fn credentials_of_aws_are_a_role_or_a_file() {
    let role = "arn:aws:iam::123456789012:role/backups";
    let indented = format!("\n {role}\n");
    let two = format!("{role}\n{role}");
    let of_role = Credentials::AwsSts {
        role: role.to_owned(),
    };
    let of_file = Credentials::AwsStatic {
        secret: "store".to_owned(),
    };
    for (data, expected) in [
        (vec![(FILE, role)], Ok(of_role.clone())),
        (vec![(FILE, indented.as_str())], Ok(of_role)),
        (
            vec![(FILE, "[default]\naws_access_key_id = a")],
            Ok(of_file),
        ),
        (vec![(FILE, two.as_str())], Err("of one role only")),
        (vec![(FILE, " \n")], Err("has no key credentials")),
        (vec![("cloud", role)], Err("has no key credentials")),
    ] {
        assert_resolved(&s3(), &data, expected);
    }
}

#[test]
fn credentials_of_azure_are_an_identity_or_a_file() {
    let identity = |client: &str, tenant: Option<&str>| Credentials::WorkloadIdentity {
        client: client.to_owned(),
        tenant: tenant.map(str::to_owned),
    };
    let machine = || Credentials::ManagedIdentity { secret: None };
    let of_certificate = || Credentials::ManagedIdentity {
        secret: Some("store".to_owned()),
    };
    let json = r#"{ "tenantId": "t", "clientId": "c", "clientSecret": "s" }"#;
    let of_secret = Credentials::ClientSecret {
        secret: "store".to_owned(),
    };
    let certificate = r#"{ "tenant_id": "t", "client_id": "c", "client_secret": "" }"#;
    for (data, expected) in [
        (
            vec![("cloud", "AZURE_TENANT_ID=t\nAZURE_CLIENT_ID=c\n")],
            Ok(identity("c", Some("t"))),
        ),
        (
            vec![("cloud", "export AZURE_CLIENT_ID = \"c\"")],
            Ok(identity("c", None)),
        ),
        (vec![("cloud", "AZURE_CLIENT_ID=\n")], Ok(machine())),
        (
            vec![("cloud", "AZURE_CLIENT_ID_OF=c"), (FILE, certificate)],
            Ok(of_certificate()),
        ),
        (vec![(FILE, json)], Ok(of_secret)),
        (vec![(FILE, certificate)], Ok(of_certificate())),
        (vec![], Ok(machine())),
        (vec![(FILE, "")], Err("is empty")),
    ] {
        assert_resolved(&azure_blob(), &data, expected);
    }
}

fn assert_resolved(
    storage: &HcpEtcdBackupStorage,
    data: &[(&str, &str)],
    expected: Result<Credentials, &str>,
) {
    let secret = secret(&consumers("clusters"), data);
    let found = resolve(storage, Some(&secret), &cluster(), HOME, false);
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{data:?}"),
        (Err(found), Err(expected)) => {
            assert!(found.contains(expected), "{data:?}: {found}");
            assert!(found.contains("Secret hypershift/store"), "{found}");
        }
        (found, _) => panic!("{data:?}: {found:?}"),
    }
}
