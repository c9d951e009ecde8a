//! Templates of machines on Power Virtual Server, field by field.

use api::annotations::node_pool::NODE_POOL;
use api::conditions::PoolCondition;
use api::group::{self, CapiTypes};
use serde_json::Value;

use super::*;
use crate::facts::fixture;
use crate::platform::machines as shared;
use crate::platform::tests::Case;

/// A pool with these settings.
fn pool_with(power_vs: &Value) -> Case {
    let cluster = fixture::hosted_cluster("powervs");
    let image = json!({ "release": "420.1.0", "object": "rhcos.ova.gz", "bucket": "rhcos-images" });
    Case::new(cluster, &json!({ "type": "PowerVS", "powervs": power_vs }))
        .with_arch("ppc64le")
        .with_boot_images(&json!({
            "ppc64le": { "images": { "powervs": { "regions": { "jp-osa": image } } } },
        }))
}

#[test]
fn a_pool_without_settings_has_the_defaults_of_the_api() {
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        let case = pool_with(&json!({}));
        let machine = machine(&case.inputs(types)).unwrap();
        assert_eq!(
            machine.spec,
            json!({
                "imageRef": { "name": "420-1-0" },
                "memoryGiB": 32,
                "network": { "name": "nodes" },
                "processorType": "Shared",
                "processors": "0.5",
                "serviceInstanceID": "workspace",
                "systemType": "s922",
            })
        );
        for (kind, name) in [
            (&machine.template, "IBMPowerVSMachineTemplate"),
            (&machine.made, "IBMPowerVSMachine"),
        ] {
            assert_eq!(kind.kind, name);
            assert_eq!(kind.version, "v1beta2");
            assert_eq!(kind.group, group::infrastructure(types));
        }
        let inputs = case.inputs(types);
        assert_eq!(
            shared::template_kind(inputs.capi, inputs.pool.spec.platform.type_),
            Some(machine.template)
        );
    }
}

#[test]
fn a_pool_has_all_requested_settings() {
    let mut case = pool_with(&json!({
        "systemType": "e980",
        "processorType": "dedicated",
        "processors": 4,
        "memoryGiB": 128,
        "image": { "id": "image-1", "name": "ignored" },
        "storageType": "tier3",
        "imageDeletePolicy": "retain",
    }));
    let subnet = &mut case.cluster.spec.platform.powervs.as_mut().unwrap().subnet;
    subnet.id = Some("network-1".to_owned());
    let machine = case.machine().unwrap();
    assert_eq!(
        machine.spec,
        json!({
            // The provider refuses a reference with both.
            "image": { "id": "image-1" },
            "memoryGiB": 128,
            "network": { "id": "network-1" },
            "processorType": "Dedicated",
            "processors": 4,
            "serviceInstanceID": "workspace",
            "systemType": "e980",
        })
    );
    let [note] = &machine.notes[..] else {
        panic!("{:?}", machine.notes);
    };
    assert_eq!(note.condition, PoolCondition::ValidPlatformImage);
    assert!(note.is_so);
    assert_eq!(note.message, "Bootstrap PowerVS Image is \"image-1\"");
    let capped =
        json!({ "processorType": "capped", "processors": "0.25", "image": { "name": "own" } });
    let machine = pool_with(&capped).machine().unwrap();
    assert_eq!(machine.spec["processorType"], "Capped");
    assert_eq!(machine.spec["image"], json!({ "name": "own" }));
}

#[test]
fn settings_that_replace_machines_are_in_the_name_of_the_template() {
    let name = |power_vs: Value| {
        let case = pool_with(&power_vs);
        let inputs = case.inputs(CapiTypes::Private);
        case.machine().unwrap().template(&inputs).name
    };
    let before = name(json!({}));
    for (power_vs, is_same) in [
        (json!({ "systemType": "s922", "memoryGiB": 32 }), true),
        (json!({ "storageType": "tier3" }), true),
        (json!({ "imageDeletePolicy": "retain" }), true),
        (json!({ "systemType": "s1022" }), false),
        (json!({ "memoryGiB": 64 }), false),
        (json!({ "processors": "1" }), false),
        (json!({ "processorType": "capped" }), false),
        (json!({ "image": { "name": "own" } }), false),
    ] {
        assert_eq!(name(power_vs.clone()) == before, is_same, "{power_vs}");
    }
}

#[test]
fn the_image_of_the_release_is_imported_whether_or_not_the_pool_has_its_own() {
    for (power_vs, storage, policy) in [
        (json!({}), "tier1", "delete"),
        (
            json!({ "storageType": "tier3", "imageDeletePolicy": "retain", "image": { "id": "a" } }),
            "tier3",
            "retain",
        ),
    ] {
        let case = pool_with(&power_vs);
        let (kind, image) = shared::boot_image(&case.inputs(CapiTypes::Private)).unwrap();
        assert_eq!(kind.kind, "IBMPowerVSImage");
        assert_eq!(kind.group, group::infrastructure(CapiTypes::Private));
        assert_eq!(
            image,
            json!({
                "metadata": {
                    "namespace": "clusters-one",
                    "name": "420-1-0",
                    "annotations": {
                        group::CLUSTER_NAME: "one-x7k2p",
                        NODE_POOL.key(): "clusters/workers",
                    },
                },
                "spec": {
                    "bucket": "rhcos-images",
                    "clusterName": "one",
                    "deletePolicy": policy,
                    "object": "rhcos.ova.gz",
                    "region": "jp-osa",
                    "serviceInstanceID": "workspace",
                    "storageType": storage,
                },
            })
        );
    }
    let mut other = pool_with(&json!({}));
    let power_vs = other.cluster.spec.platform.powervs.as_mut().unwrap();
    power_vs.region = "lon".to_owned();
    assert_eq!(shared::boot_image(&other.inputs(CapiTypes::Private)), None);
}

#[test]
fn machines_that_cannot_be_are_refused() {
    type Change = fn(&mut Case);
    let table: [(&str, Value, Change, &str, &str); 11] = [
        (
            "a cluster elsewhere",
            json!({}),
            |it| it.cluster.spec.platform.powervs = None,
            "InvalidConfiguration",
            "the HostedCluster is not on PowerVS",
        ),
        (
            "no network",
            json!({}),
            |it| {
                let power_vs = it.cluster.spec.platform.powervs.as_mut().unwrap();
                power_vs.subnet.name = None;
            },
            "InvalidConfiguration",
            "neither id nor name in spec.platform.powervs.subnet",
        ),
        (
            "no system",
            json!({ "systemType": "" }),
            |_| {},
            "InvalidConfiguration",
            "spec.platform.powervs.systemType is empty",
        ),
        (
            "little memory",
            json!({ "memoryGiB": 1 }),
            |_| {},
            "InvalidConfiguration",
            "memoryGiB is 1: a machine has at least 2 GiB",
        ),
        (
            "no number",
            json!({ "processors": "many" }),
            |_| {},
            "InvalidConfiguration",
            "processors is \"many\": shared and capped processors are numbers from 0.25",
        ),
        (
            "not a number",
            json!({ "processors": "NaN" }),
            |_| {},
            "InvalidConfiguration",
            "processors is \"NaN\"",
        ),
        (
            "too few processors",
            json!({ "processorType": "capped", "processors": "0.2" }),
            |_| {},
            "InvalidConfiguration",
            "processors is \"0.2\"",
        ),
        (
            "a part of a processor",
            json!({ "processorType": "dedicated", "processors": "1.5" }),
            |_| {},
            "InvalidConfiguration",
            "dedicated processors are whole numbers from 1",
        ),
        (
            "the default for a processor of its own",
            json!({ "processorType": "dedicated" }),
            |_| {},
            "InvalidConfiguration",
            "processors is \"0.5\"",
        ),
        (
            "an image without a name",
            json!({ "image": {} }),
            |_| {},
            "InvalidImage",
            "spec.platform.powervs.image has neither id nor name",
        ),
        (
            "no image in the region",
            json!({}),
            |it| {
                let power_vs = it.cluster.spec.platform.powervs.as_mut().unwrap();
                power_vs.region = "lon".to_owned();
            },
            "InvalidImage",
            "has no ppc64le image in region eu-gb of Cloud Object Storage, which region lon of Power Virtual Server uses: \
             set spec.platform.powervs.image",
        ),
    ];
    for (name, power_vs, change, reason, expected) in table {
        let mut case = pool_with(&power_vs);
        change(&mut case);
        let Err(refused) = case.machine() else {
            panic!("{name}: it is accepted");
        };
        assert_eq!(refused.reason, reason, "{name}");
        let about = if reason == "InvalidImage" {
            PoolCondition::ValidPlatformImage
        } else {
            PoolCondition::ValidMachineTemplate
        };
        assert_eq!(refused.condition, about, "{name}");
        assert!(
            refused.message.contains(expected),
            "{name}: {}",
            refused.message
        );
    }
}
