//! Golden files of what is created for a backup, one for each way to authenticate.

use std::fs;
use std::path::Path;

use support::testing::restricted_violations;

use super::*;
use crate::canonical;
use crate::etcd_backup::manifest::{access, service_account};

const NAMESPACE: &str = "hypershift";

fn backup(storage: &Value) -> HcpEtcdBackup {
    let backup = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HCPEtcdBackup",
        "metadata": {
            "namespace": "clusters-one",
            "name": "nightly",
            "uid": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
        },
        "spec": { "storage": storage },
    });
    serde_json::from_value(backup).unwrap()
}

fn s3() -> Value {
    json!({ "storageType": "S3", "s3": {
        "bucket": "backups",
        "region": "eu-west-1",
        "keyPrefix": "clusters/one",
        "credentials": { "name": "store" },
        "kmsKeyARN": "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555",
    }})
}

fn azure_blob() -> Value {
    json!({ "storageType": "AzureBlob", "azureBlob": {
        "container": "backups",
        "storageAccount": "account1",
        "keyPrefix": "clusters/one",
        "credentials": { "name": "store" },
        "encryptionKeyURL": "https://vault.vault.azure.net/keys/backups",
    }})
}

/// All ways to authenticate, with their storage.
fn modes() -> Vec<(&'static str, Value, Credentials)> {
    let secret = "store".to_owned();
    vec![
        (
            "aws-sts",
            s3(),
            Credentials::AwsSts {
                role: "arn:aws:iam::123456789012:role/backups".to_owned(),
            },
        ),
        (
            "aws-static",
            s3(),
            Credentials::AwsStatic {
                secret: secret.clone(),
            },
        ),
        (
            "workload-identity",
            azure_blob(),
            Credentials::WorkloadIdentity {
                client: "11111111-2222-3333-4444-555555555555".to_owned(),
                tenant: Some("66666666-7777-8888-9999-000000000000".to_owned()),
            },
        ),
        (
            "managed-identity",
            azure_blob(),
            Credentials::ManagedIdentity {
                secret: Some(secret.clone()),
            },
        ),
        (
            "machine-identity",
            azure_blob(),
            Credentials::ManagedIdentity { secret: None },
        ),
        (
            "client-secret",
            azure_blob(),
            Credentials::ClientSecret { secret },
        ),
    ]
}

fn render(storage: &Value, credentials: &Credentials) -> Value {
    let id = Id {
        namespace: "clusters".to_owned(),
        name: "one".to_owned(),
    };
    let images = Images {
        operator: "registry.example.com/operator@sha256:a".to_owned(),
        etcd: "registry.example.com/etcd@sha256:b".to_owned(),
    };
    job(&Input {
        backup: &backup(storage),
        cluster: &id,
        namespace: NAMESPACE,
        images: &images,
        credentials,
        user: Some(1001),
    })
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` writes it.
fn golden(name: &str, objects: &[Value]) {
    let objects = objects.iter();
    let objects = objects.map(|it| serde_saphyr::to_string(&canonical::sorted(it)).unwrap());
    let text = objects.collect::<Vec<_>>().join("---\n");
    let path = format!(
        "{}/tests/golden/etcd-backup/{name}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{path} differs: UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn jobs_of_all_credentials_match_their_golden_files() {
    for (name, storage, credentials) in modes() {
        golden(name, &[render(&storage, &credentials)]);
    }
}

#[test]
fn access_matches_its_golden_file() {
    let [role, binding, policy] = access("clusters-one", "clusters/one", NAMESPACE);
    let manifests = [service_account(NAMESPACE), role, binding, policy];
    let objects = manifests.map(|it| {
        let mut body = it.body;
        body["apiVersion"] = json!(it.resource.api_version);
        body["kind"] = json!(it.resource.kind);
        body
    });
    golden("access", &objects);
}

/// Check T27.
#[test]
fn pods_comply_with_the_restricted_standard() {
    for (name, storage, credentials) in modes() {
        let job = render(&storage, &credentials);
        let found = restricted_violations(&job["spec"]["template"]["spec"]);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// Check T27: the image of etcd comes from the release, which an author chooses.
#[test]
fn containers_have_only_the_credentials_that_they_need() {
    for (name, storage, credentials) in modes() {
        let job = render(&storage, &credentials);
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        let mounts = |container: &Value| -> Vec<String> {
            let mounts = container["volumeMounts"].as_array().unwrap();
            let names = mounts.iter().map(|it| it["name"].as_str().unwrap());
            names.map(str::to_owned).collect()
        };
        let [fetch, snapshot] = &pod["initContainers"].as_array().unwrap()[..] else {
            panic!("{name}: {pod}");
        };
        assert_eq!(mounts(fetch), ["etcd-certs", "kube-api-access"], "{name}");
        assert_eq!(mounts(snapshot), ["etcd-certs", "etcd-backup"], "{name}");
        let upload = mounts(&pod["containers"][0]);
        assert!(!upload.contains(&"kube-api-access".to_owned()), "{name}");
        assert!(!upload.contains(&"etcd-certs".to_owned()), "{name}");
    }
}

/// Check T27: no value of an HCPEtcdBackup becomes a flag of its own, even one that the CRD would reject.
#[test]
fn values_are_parts_of_their_flags() {
    let mut storage = s3();
    for field in ["bucket", "region", "keyPrefix"] {
        storage["s3"][field] = json!("--credentials-file=/etc/passwd");
    }
    storage["s3"]["kmsKeyARN"] = json!("--snapshot-path=/etc/passwd");
    let (_, _, credentials) = modes().remove(0);
    let job = render(&storage, &credentials);
    let arguments = &job["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments: Vec<_> = arguments.as_array().unwrap().iter().collect();
    let flags = ["--credentials-file", "--snapshot-path"].map(|flag| {
        let begins = |it: &&&Value| it.as_str().unwrap().starts_with(flag);
        arguments.iter().filter(begins).count()
    });
    assert_eq!(flags, [0, 1], "{arguments:?}");
}

#[test]
fn names_of_jobs_and_values_of_labels_have_their_lengths() {
    let long = format!("{}.{}", "a".repeat(41), "b".repeat(200));
    for (name, expected) in [
        ("nightly", "etcd-backup-nightly-0f1e2d3c".to_owned()),
        ("of.monday", "etcd-backup-of-monday-0f1e2d3c".to_owned()),
        (
            long.as_str(),
            format!("etcd-backup-{}-0f1e2d3c", "a".repeat(41)),
        ),
    ] {
        let mut backup = backup(&s3());
        backup.metadata.name = Some(name.to_owned());
        let found = super::name(&backup);
        assert_eq!(found, expected);
        assert!(found.len() <= LONGEST_LABEL);
        let label = label(name);
        assert!(label.len() <= LONGEST_LABEL && name.starts_with(&label));
    }
    assert_eq!(label(&format!("{}.b", "a".repeat(62))), "a".repeat(62));
}
