//! Templates of machines on Google Cloud, field by field.

use super::*;
use crate::facts::fixture;
use crate::platform::machines::failure_domain;
use crate::platform::tests::Case;

/// A pool with these settings in addition to those that are required.
fn pool_with(settings: &Value) -> Case {
    let required =
        json!({ "machineType": "n2-standard-4", "zone": "us-central1-a", "subnet": "nodes" });
    let gcp = fixture::with(required, settings);
    let mut cluster = fixture::hosted_cluster("gcp");
    let labels = json!([{ "key": "team", "value": "red" }, { "key": "cost", "value": "a" }]);
    let of_cluster = cluster.spec.platform.gcp.as_mut().unwrap();
    of_cluster.resource_labels = serde_json::from_value(labels).unwrap();
    let mut case =
        Case::new(cluster, &json!({ "type": "GCP", "gcp": gcp })).with_boot_images(&json!({
            "x86_64": { "images": { "gcp": { "project": "rhcos", "name": "image-1" } } },
        }));
    case.infra_id = "One-x7k2p";
    case
}

#[test]
fn a_pool_without_settings_has_the_defaults() {
    let machine = pool_with(&json!({})).machine().unwrap();
    assert_eq!(
        machine.spec,
        json!({
            "additionalLabels": {
                "cost": "a",
                "hypershift-openshift-io-cluster": "one",
                "hypershift-openshift-io-infra-id": "One-x7k2p",
                "team": "red",
            },
            "additionalMetadata": [
                { "key": "hypershift-cluster", "value": "one" },
                { "key": "hypershift-infra-id", "value": "One-x7k2p" },
                { "key": "hypershift-nodepool", "value": "workers" },
            ],
            "additionalNetworkTags": ["one-x7k2p-worker"],
            "image": "projects/rhcos/global/images/image-1",
            "instanceType": "n2-standard-4",
            "onHostMaintenance": "Migrate",
            "provisioningModel": "Standard",
            "rootDeviceSize": 64,
            "rootDeviceType": "pd-balanced",
            "subnet": "nodes",
        })
    );
    assert_eq!(machine.template.kind, "GCPMachineTemplate");
    assert_eq!(machine.made.kind, "GCPMachine");
}

#[test]
fn settings_of_a_pool_are_those_of_its_machines() {
    let key = "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key";
    let email = "workers@my-project.iam.gserviceaccount.com";
    for (settings, field, expected) in [
        (json!({ "image": "image-2" }), "/image", json!("image-2")),
        (
            json!({ "bootDisk": { "diskSizeGB": 128, "diskType": "pd-ssd" } }),
            "/rootDeviceSize",
            json!(128),
        ),
        (
            json!({ "bootDisk": { "diskType": "pd-ssd" } }),
            "/rootDeviceType",
            json!("pd-ssd"),
        ),
        (
            json!({ "bootDisk": { "encryptionKey": { "kmsKeyName": key } } }),
            "/rootDiskEncryptionKey",
            json!({ "keyType": "Managed", "managedKey": { "kmsKeyName": key } }),
        ),
        (
            json!({ "serviceAccount": { "email": email, "scopes": ["a"] } }),
            "/serviceAccounts",
            json!({ "email": email, "scopes": ["a"] }),
        ),
        (
            json!({ "serviceAccount": {} }),
            "/serviceAccounts/email",
            json!("default"),
        ),
        (
            json!({ "serviceAccount": { "email": email } }),
            "/serviceAccounts/scopes/0",
            json!("https://www.googleapis.com/auth/devstorage.read_only"),
        ),
        (
            json!({ "resourceLabels": [{ "key": "team", "value": "blue" }] }),
            "/additionalLabels/team",
            json!("blue"),
        ),
        (
            json!({ "networkTags": ["web"] }),
            "/additionalNetworkTags",
            json!(["web", "one-x7k2p-worker"]),
        ),
        (
            json!({ "provisioningModel": "Spot" }),
            "/onHostMaintenance",
            json!("Terminate"),
        ),
        (
            json!({ "provisioningModel": "Spot" }),
            "/provisioningModel",
            json!("Spot"),
        ),
        (
            json!({ "provisioningModel": "Preemptible" }),
            "/preemptible",
            json!(true),
        ),
        (
            json!({ "onHostMaintenance": "TERMINATE" }),
            "/onHostMaintenance",
            json!("Terminate"),
        ),
    ] {
        let machine = pool_with(&settings).machine().unwrap();
        assert_eq!(machine.spec.pointer(field), Some(&expected), "{settings}");
    }
}

#[test]
fn labels_replace_no_machines() {
    let hash = |settings: &Value| pool_with(settings).machine().unwrap().hash();
    let labels = json!({ "resourceLabels": [{ "key": "team", "value": "blue" }] });
    assert_eq!(hash(&labels), hash(&json!({})));
    assert_ne!(hash(&json!({ "image": "image-2" })), hash(&json!({})));
}

#[test]
fn a_pool_has_the_zone_of_its_machines() {
    let case = pool_with(&json!({}));
    assert_eq!(failure_domain(&case.pool), Some("us-central1-a"));
}

#[test]
fn machines_that_cannot_be_made_are_refused() {
    let mut case = pool_with(&json!({}));
    case.release = fixture::release();
    let refused = case.machine().unwrap_err();
    assert!(
        refused
            .message
            .contains("has no image for Amd64 on Google Cloud"),
        "{refused}"
    );
    let mut case = pool_with(&json!({}));
    case.cluster = fixture::hosted_cluster("none");
    let refused = case.machine().unwrap_err();
    assert!(refused.message.contains("is not on GCP"), "{refused}");
    case.pool.spec.platform.gcp = None;
    let refused = case.machine().unwrap_err();
    assert!(
        refused.message.contains("spec.platform.gcp is required"),
        "{refused}"
    );
}
