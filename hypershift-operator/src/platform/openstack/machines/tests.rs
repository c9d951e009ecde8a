//! Templates of machines on OpenStack, field by field.

use api::group::CapiTypes;

use super::*;
use crate::facts::fixture;
use crate::platform::machines as shared;
use crate::platform::tests::Case;

/// A pool with these settings in addition to those that are required.
fn pool_with(settings: &Value) -> Case {
    let openstack = fixture::with(json!({ "flavor": "m1.large" }), settings);
    let cluster = fixture::hosted_cluster("openstack");
    let disk = json!({ "location": "https://images.example.com/rhcos.qcow2.gz", "sha256": "aa" });
    let artifact = json!({ "release": "420.1.0", "formats": { "qcow2.gz": { "disk": disk } } });
    Case::new(
        cluster,
        &json!({ "type": "OpenStack", "openstack": openstack }),
    )
    .with_boot_images(&json!({ "x86_64": { "artifacts": { "openstack": artifact } } }))
}

#[test]
fn a_pool_without_settings_has_the_image_of_the_release() {
    let case = pool_with(&json!({}));
    let machine = case.machine().unwrap();
    assert_eq!(
        machine.spec,
        json!({ "flavor": "m1.large", "image": { "imageRef": { "name": "rhcos-420.1.0" } } })
    );
    assert_eq!(machine.template.kind, "OpenStackMachineTemplate");
    assert_eq!(machine.made.kind, "OpenStackMachine");
    let (kind, image) = shared::boot_image(&case.inputs(CapiTypes::Private)).unwrap();
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
    let case = pool_with(&json!({ "imageName": "rhcos" }));
    let machine = case.machine().unwrap();
    assert_eq!(
        machine.spec["image"],
        json!({ "filter": { "name": "rhcos" } })
    );
    assert_eq!(shared::boot_image(&case.inputs(CapiTypes::Private)), None);
}

#[test]
fn additional_ports_follow_that_of_the_cluster() {
    let pairs = json!([{ "ipAddress": "10.0.0.1" }, { "ipAddress": "10.0.0.2" }]);
    let ports = json!([
        { "network": { "filter": { "name": "storage" } }, "allowedAddressPairs": pairs, "portSecurityPolicy": "Disabled" },
        { "description": "fast", "vnicType": "direct", "portSecurityPolicy": "" },
    ]);
    let mut case = pool_with(&json!({ "additionalPorts": ports }));
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
        let case = pool_with(&settings);
        assert_eq!(shared::failure_domain(&case.pool), expected);
    }
}

#[test]
fn machines_that_cannot_be_made_are_refused() {
    let mut case = pool_with(&json!({}));
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
