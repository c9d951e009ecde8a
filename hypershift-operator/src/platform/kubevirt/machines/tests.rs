//! Templates of virtual machines.

use api::annotations::node_pool::{
    ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS, KUBEVIRT_VM_JSONPATCH,
};
use api::group::CapiTypes;

use super::*;
use crate::facts::fixture;
use crate::platform::tests as cases;

/// A pool on KubeVirt.
struct Case(cases::Case);

// === impl Case ===

impl Case {
    fn new(kubevirt: &Value) -> Self {
        let cluster = fixture::hosted_cluster("kubevirt");
        let platform = json!({ "type": "KubeVirt", "kubevirt": kubevirt });
        let image = format!("images.example.com/rhcos@sha256:{}", "b".repeat(64));
        Self(cases::Case::new(cluster, &platform)).with_disk(&image)
    }

    /// With another container disk, and a disk for clouds of `OpenStack`.
    fn with_disk(self, reference: &str) -> Self {
        let disk =
            json!({ "location": "https://images.example.com/disk.qcow2.gz", "sha256": "cc" });
        let Self(case) = self;
        Self(case.with_boot_images(&json!({ "x86_64": {
            "artifacts": { "openstack": { "formats": { "qcow2.gz": { "disk": disk } } } },
            "images": { "kubevirt": { "digest-ref": reference } },
        } })))
    }

    fn external(mut self) -> Self {
        let platform = json!({ "credentials": {
            "infraKubeConfigSecret": { "name": "infra", "key": "kubeconfig" },
            "infraNamespace": "machines",
        } });
        self.0.cluster.spec.platform.kubevirt = serde_json::from_value(platform).unwrap();
        self
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        let annotations = self.0.pool.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    fn with_status(mut self, status: Value) -> Self {
        self.0.pool.status = serde_json::from_value(status).unwrap();
        self
    }

    fn with_inputs<T>(&self, with: impl FnOnce(&Inputs<'_>) -> T) -> T {
        with(&self.0.inputs(CapiTypes::Private))
    }

    /// The virtual machine's template.
    fn template(&self) -> Result<Value, Refused> {
        let machine = self.0.machine()?;
        Ok(machine.spec["virtualMachineTemplate"].clone())
    }

    fn at(&self, pointer: &str) -> Value {
        let template = self.template().unwrap();
        template.pointer(pointer).cloned().unwrap_or_default()
    }
}

const POD: &str = "/spec/template/spec";

#[test]
fn machines_have_a_namespace_on_another_cluster_only() {
    let local = Case::new(&json!({ "rootVolume": {} }));
    assert_eq!(local.at("/metadata/namespace"), Value::Null);
    assert_eq!(local.external().at("/metadata/namespace"), "machines");
}

#[test]
fn guaranteed_machines_have_resources_in_place_of_sizes() {
    for (class, sizes, resources) in [
        (
            "Burstable",
            json!([{ "cores": 4 }, { "guest": "16Gi" }]),
            Value::Null,
        ),
        (
            "Guaranteed",
            json!([null, null]),
            json!({
                "requests": { "cpu": "4", "memory": "16Gi" },
                "limits": { "cpu": "4", "memory": "16Gi" },
            }),
        ),
    ] {
        let compute = json!({ "cores": 4, "memory": "16Gi", "qosClass": class });
        let case = Case::new(&json!({ "rootVolume": {}, "compute": compute }));
        let domain = case.at(&format!("{POD}/domain"));
        assert_eq!(json!([domain["cpu"], domain["memory"]]), sizes, "{class}");
        assert_eq!(domain["resources"], resources, "{class}");
    }
}

#[test]
fn pods_of_machines_may_be_evicted_and_moved() {
    let networks = json!([{ "name": "networks/storage" }]);
    for (attached, expected) in [(true, json!("")), (false, Value::Null)] {
        let case = Case::new(&json!({
            "rootVolume": {}, "attachDefaultNetwork": attached, "additionalNetworks": networks,
        }));
        let annotations = case.at("/spec/template/metadata/annotations");
        assert_eq!(annotations[LIVE_MIGRATION], expected, "{attached}");
        let volumes = annotations[EVICTABLE].as_str().unwrap();
        assert!(
            volumes.ends_with("container-disks,hotplug-disks"),
            "{volumes}"
        );
    }
}

#[test]
fn host_devices_are_numbered_over_all() {
    let devices = json!([
        { "deviceName": "example.com/gpu", "count": 2 },
        { "deviceName": "example.com/nic" },
    ]);
    let case = Case::new(&json!({ "rootVolume": {}, "hostDevices": devices }));
    let expected = json!([
        { "name": "hostdevice-1", "deviceName": "example.com/gpu" },
        { "name": "hostdevice-2", "deviceName": "example.com/gpu" },
        { "name": "hostdevice-3", "deviceName": "example.com/nic" },
    ]);
    assert_eq!(
        case.at(&format!("{POD}/domain/devices/hostDevices")),
        expected
    );
}

/// Check O07: an upgrade of this operator replaces no machines.
#[test]
fn machines_of_an_earlier_version_are_kept_until_their_template_changes() {
    let case = Case::new(&json!({ "rootVolume": {} }));
    let name = |case: &Case, form| {
        case.with_inputs(|inputs| {
            let kubevirt = inputs.pool.spec.platform.kubevirt.as_ref().unwrap();
            render(inputs, kubevirt, form)
                .unwrap()
                .template(inputs)
                .name
        })
    };
    let used =
        |case: &Case| case.with_inputs(|inputs| machine(inputs).unwrap().template(inputs).name);
    let earlier = name(&case, Form::Earlier);
    assert_eq!(used(&case), name(&case, Form::Current), "a new pool");
    let kept = case.annotated(PLATFORM_MACHINE_TEMPLATE.key(), &earlier);
    assert_eq!(used(&kept), earlier);
    let changed = kept.with_disk("images.example.com/rhcos@sha256:cc");
    assert_eq!(
        used(&changed),
        name(&changed, Form::Current),
        "a new release"
    );
}

#[test]
fn patches_do_not_change_whose_machines_they_are() {
    let own = Case::new(&json!({ "rootVolume": {} }));
    let patched = |operations: Value| {
        let case = Case::new(&json!({ "rootVolume": {} }));
        case.annotated(KUBEVIRT_VM_JSONPATCH.key(), &operations.to_string())
    };
    let replace = |path: &str, value: Value| json!([{ "op": "add", "path": path, "value": value }]);
    for operations in [
        replace("/metadata/namespace", json!("other")),
        replace(
            "/metadata/labels/hypershift.openshift.io~1infra-id",
            json!("other"),
        ),
        json!([{ "op": "remove", "path": "/spec/template/metadata/labels/hypershift.openshift.io~1infra-id" }]),
    ] {
        let found = patched(operations.clone()).template();
        assert_eq!(found, own.template(), "{operations}");
    }
    for operations in [
        replace("", json!("text")),
        replace("/metadata", json!("text")),
        replace("/metadata/labels", json!(7)),
        json!([{ "op": "remove", "path": "/spec/template" }]),
    ] {
        let refused = patched(operations.clone()).template().unwrap_err();
        assert_eq!(refused.condition, PoolCondition::ValidMachineTemplate);
        assert_eq!(refused.reason, "InvalidKubevirtMachineTemplate");
        assert!(
            refused.message.contains("leaves no labels"),
            "{operations}: {refused}"
        );
    }
}

#[test]
fn disks_start_from_images_with_digests() {
    let pvc = json!({ "rootVolume": { "cacheStrategy": { "type": "PVC" } } });
    let none = json!({ "rootVolume": { "cacheStrategy": { "type": "None" } } });
    let own = |image: &str| {
        json!({ "rootVolume": {
            "cacheStrategy": { "type": "PVC" },
            "diskImage": { "containerDiskImage": image },
        } })
    };
    let copy = json!({ "platform": { "kubeVirt": { "cacheName": "copy" } } });
    let empty = json!({ "platform": { "kubeVirt": { "cacheName": "" } } });
    let clone = json!({ "pvc": { "name": "copy", "namespace": "clusters-one" } });
    let registry = |image: &str| json!({ "registry": { "url": format!("docker://{image}"), "pullMethod": "node" } });
    let digest = format!("images.example.com/rhcos@sha256:{}", "b".repeat(64));
    for (name, kubevirt, status, expected) in [
        ("a copy", &pvc, &copy, Ok(clone.clone())),
        (
            "a copy that is not there",
            &pvc,
            &empty,
            Err("wait until it is created"),
        ),
        ("no copy", &none, &copy, Ok(registry(&digest))),
        (
            "a tag is not copied",
            &own("a.example.com/b:1"),
            &copy,
            Ok(registry("a.example.com/b:1")),
        ),
        (
            "a digest is",
            &own("a.example.com/b@sha256:dd"),
            &copy,
            Ok(clone),
        ),
    ] {
        let case = Case::new(kubevirt).with_status(status.clone());
        match (case.template(), expected) {
            (Ok(template), expected) => {
                let source = template["spec"]["dataVolumeTemplates"][0]["spec"]["source"].clone();
                assert_eq!(Ok(source), expected, "{name}");
            }
            (Err(refused), Err(part)) => {
                assert!(refused.message.contains(part), "{name}: {refused}");
            }
            (Err(refused), Ok(_)) => panic!("{name}: {refused}"),
        }
    }
    let case = Case::new(&none).with_disk("images.example.com/rhcos:9");
    let refused = case.template().unwrap_err();
    assert_eq!(refused.condition, PoolCondition::ValidPlatformImage);
    assert!(refused.message.contains("has no digest"), "{refused}");
    let case = case.annotated(ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS.key(), "true");
    let volume = case.at("/spec/dataVolumeTemplates/0");
    let expected = json!({ "http": { "url": "https://images.example.com/disk.qcow2.gz" } });
    assert_eq!(volume["spec"]["source"], expected);
    assert_eq!(volume["metadata"]["labels"][disk::OPERATING_SYSTEM], "true");
}

#[test]
fn impossible_settings_are_problems() {
    let root = json!({ "persistent": { "size": "32Gi" }, "type": "Persistent" });
    let devices =
        |count: i64| json!([{ "deviceName": "a", "count": count }, { "deviceName": "b" }]);
    for (kubevirt, expected) in [
        (json!({ "rootVolume": root }), None),
        (json!({ "rootVolume": {} }), None),
        (
            json!({ "rootVolume": { "type": "Persistent" } }),
            Some("rootVolume.persistent is required"),
        ),
        (
            json!({ "rootVolume": root, "attachDefaultNetwork": false }),
            Some("list one in additionalNetworks"),
        ),
        (
            json!({ "rootVolume": root, "hostDevices": devices(0) }),
            Some("hostDevices[0].count"),
        ),
        (
            json!({ "rootVolume": root, "hostDevices": devices(127) }),
            None,
        ),
        (
            json!({ "rootVolume": root, "hostDevices": devices(2_147_483_647) }),
            Some("2147483648 devices: a machine may have at most 128"),
        ),
    ] {
        let case = Case::new(&kubevirt);
        let found = problem(&case.0.pool);
        match expected {
            None => assert_eq!(found, None, "{kubevirt}"),
            Some(part) => {
                let message = found.unwrap();
                assert!(message.contains(part), "{message}");
                assert_eq!(case.template().unwrap_err().message, message);
            }
        }
    }
}
