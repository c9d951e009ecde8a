//! Templates of machines on Google Cloud, field by field.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::node_pool::NodePool;
use payload::boot_images::Streams;
use payload::{Capabilities, Release};

use super::*;
use crate::capi::Capi;
use crate::facts::fixture;
use crate::platform::machines as shared;

/// A pool, its cluster and its release.
struct Case {
    pool: NodePool,
    cluster: HostedCluster,
    release: Release,
    capabilities: Capabilities,
}

// === impl Case ===

impl Case {
    /// A pool with these settings in addition to those that are required.
    fn new(settings: &Value) -> Self {
        let mut gcp =
            json!({ "machineType": "n2-standard-4", "zone": "us-central1-a", "subnet": "nodes" });
        for (field, value) in settings.as_object().unwrap() {
            gcp[field] = value.clone();
        }
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers" },
            "spec": {
                "clusterName": "one",
                "release": { "image": fixture::RELEASE },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "GCP", "gcp": gcp },
            },
        });
        let email = "account@my-project.iam.gserviceaccount.com";
        let platform = json!({ "type": "GCP", "gcp": {
            "project": "my-project",
            "region": "us-central1",
            "networkConfig": {
                "network": { "name": "my-network" },
                "privateServiceConnectSubnet": { "name": "psc" },
            },
            "resourceLabels": [{ "key": "team", "value": "red" }, { "key": "cost", "value": "a" }],
            "workloadIdentity": {
                "projectNumber": "1", "poolID": "pool", "providerID": "provider",
                "serviceAccountsEmails": {
                    "nodePool": email, "controlPlane": email, "cloudController": email,
                    "storage": email, "imageRegistry": email, "network": email,
                },
            },
        } });
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.platform = serde_json::from_value(platform).unwrap();
        let stream = json!({
            "stream": "rhcos",
            "architectures": { "x86_64": { "images": { "gcp": { "project": "rhcos", "name": "image-1" } } } },
        });
        let map = json!({ "data": { "stream": stream.to_string() } });
        let streams = Streams::parse(&map.to_string()).unwrap();
        Self {
            pool: serde_json::from_value(pool).unwrap(),
            cluster,
            release: fixture::release().with_boot_images(streams),
            capabilities: Capabilities::default(),
        }
    }

    fn machine(&self) -> Result<Machine, Refused> {
        let inputs = Inputs {
            capi: Capi::new(CapiTypes::Private),
            pool: &self.pool,
            cluster: &self.cluster,
            release: &self.release,
            capabilities: &self.capabilities,
            infra_id: "One-x7k2p",
            namespace: "clusters-one",
        };
        shared::machine(&inputs).map(Option::unwrap)
    }
}

#[test]
fn a_pool_without_settings_has_the_defaults() {
    let machine = Case::new(&json!({})).machine().unwrap();
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
        let machine = Case::new(&settings).machine().unwrap();
        assert_eq!(machine.spec.pointer(field), Some(&expected), "{settings}");
    }
}

#[test]
fn labels_replace_no_machines() {
    let hash = |settings: &Value| Case::new(settings).machine().unwrap().hash();
    let labels = json!({ "resourceLabels": [{ "key": "team", "value": "blue" }] });
    assert_eq!(hash(&labels), hash(&json!({})));
    assert_ne!(hash(&json!({ "image": "image-2" })), hash(&json!({})));
}

#[test]
fn a_pool_has_the_zone_of_its_machines() {
    let case = Case::new(&json!({}));
    assert_eq!(shared::failure_domain(&case.pool), Some("us-central1-a"));
}

#[test]
fn machines_that_cannot_be_made_are_refused() {
    let mut case = Case::new(&json!({}));
    case.release = fixture::release();
    let refused = case.machine().unwrap_err();
    assert!(
        refused
            .message
            .contains("has no image for Amd64 on Google Cloud"),
        "{refused}"
    );
    let mut case = Case::new(&json!({}));
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
