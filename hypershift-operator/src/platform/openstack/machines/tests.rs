//! Templates of machines on OpenStack, field by field.

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
        let mut openstack = json!({ "flavor": "m1.large" });
        for (field, value) in settings.as_object().unwrap() {
            openstack[field] = value.clone();
        }
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers" },
            "spec": {
                "clusterName": "one",
                "release": { "image": fixture::RELEASE },
                "management": { "upgradeType": "Replace" },
                "platform": { "type": "OpenStack", "openstack": openstack },
            },
        });
        let platform = json!({ "type": "OpenStack", "openstack": {
            "identityRef": { "name": "one-cloud", "cloudName": "openstack" },
        } });
        let mut cluster = fixture::hosted_cluster("none");
        cluster.spec.platform = serde_json::from_value(platform).unwrap();
        let disk =
            json!({ "location": "https://images.example.com/rhcos.qcow2.gz", "sha256": "aa" });
        let artifact = json!({ "release": "420.1.0", "formats": { "qcow2.gz": { "disk": disk } } });
        let stream = json!({
            "stream": "rhcos",
            "architectures": { "x86_64": { "artifacts": { "openstack": artifact } } },
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

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            capi: Capi::new(CapiTypes::Private),
            pool: &self.pool,
            cluster: &self.cluster,
            release: &self.release,
            capabilities: &self.capabilities,
            infra_id: "one-x7k2p",
            namespace: "clusters-one",
        }
    }

    fn machine(&self) -> Result<Machine, Refused> {
        shared::machine(&self.inputs()).map(Option::unwrap)
    }
}

#[test]
fn a_pool_without_settings_has_the_image_of_the_release() {
    let case = Case::new(&json!({}));
    let machine = case.machine().unwrap();
    assert_eq!(
        machine.spec,
        json!({ "flavor": "m1.large", "image": { "imageRef": { "name": "rhcos-420.1.0" } } })
    );
    assert_eq!(machine.template.kind, "OpenStackMachineTemplate");
    assert_eq!(machine.made.kind, "OpenStackMachine");
    let (kind, image) = shared::boot_image(&case.inputs()).unwrap();
    assert_eq!(kind.api_version, "openstack.k-orc.cloud/v1alpha1");
    assert_eq!(image["metadata"]["name"], "rhcos-420.1.0");
    assert_eq!(
        image["spec"],
        json!({
            "cloudCredentialsRef": { "secretName": "one-cloud", "cloudName": "openstack" },
            "resource": {
                "name": "one-rhcos-420.1.0",
                "content": {
                    "containerFormat": "bare",
                    "diskFormat": "qcow2",
                    "download": {
                        "url": "https://images.example.com/rhcos.qcow2.gz",
                        "decompress": "gz",
                        "hash": { "algorithm": "sha256", "value": "aa" },
                    },
                },
            },
        })
    );
}

#[test]
fn an_image_of_the_user_is_not_imported() {
    let case = Case::new(&json!({ "imageName": "rhcos" }));
    let machine = case.machine().unwrap();
    assert_eq!(
        machine.spec["image"],
        json!({ "filter": { "name": "rhcos" } })
    );
    assert_eq!(shared::boot_image(&case.inputs()), None);
}

#[test]
fn additional_ports_follow_that_of_the_cluster() {
    let pairs = json!([{ "ipAddress": "10.0.0.1" }, { "ipAddress": "10.0.0.2" }]);
    let ports = json!([
        { "network": { "filter": { "name": "storage" } }, "allowedAddressPairs": pairs, "portSecurityPolicy": "Disabled" },
        { "description": "fast", "vnicType": "direct", "portSecurityPolicy": "" },
    ]);
    let mut case = Case::new(&json!({ "additionalPorts": ports }));
    assert_eq!(
        case.machine().unwrap().spec["ports"],
        json!([
            {},
            {
                "description": "Additional port for Hypershift node pool workers",
                "network": { "filter": { "name": "storage" } },
                "allowedAddressPairs": pairs,
                "disablePortSecurity": true,
            },
            { "description": "fast", "vnicType": "direct" },
        ])
    );
    let openstack = case.cluster.spec.platform.openstack.as_mut().unwrap();
    let subnets = json!([{ "filter": { "name": "nodes" } }]);
    openstack.subnets = serde_json::from_value(subnets).unwrap();
    assert_eq!(case.machine().unwrap().spec.get("ports"), None);
}

#[test]
fn a_pool_has_the_availability_zone_of_its_machines() {
    for (settings, expected) in [
        (json!({}), None),
        (json!({ "availabilityZone": "nova" }), Some("nova")),
    ] {
        let case = Case::new(&settings);
        assert_eq!(shared::failure_domain(&case.pool), expected);
    }
}

#[test]
fn machines_that_cannot_be_made_are_refused() {
    let mut case = Case::new(&json!({}));
    case.release = fixture::release();
    let refused = case.machine().unwrap_err();
    assert!(
        refused
            .message
            .contains("has no image for Amd64 on OpenStack"),
        "{refused}"
    );
    case.cluster = fixture::hosted_cluster("none");
    let refused = case.machine().unwrap_err();
    assert!(refused.message.contains("is not on OpenStack"), "{refused}");
}
