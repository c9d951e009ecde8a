//! The part of KubeVirt's storage driver that runs in the hosted cluster, and its storage classes.

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, bare, manifest, namespace, service_account};

const NODE_RBAC: &str = include_str!("assets/rbac-kubevirt-csi-node.yaml");
const CONTROLLER_RBAC: &str = include_str!("assets/rbac-kubevirt-csi-controller.yaml");
const NODE: &str = include_str!("assets/kubevirt-csi-node.yaml");
const NAMESPACE: &str = "openshift-cluster-csi-drivers";
const DRIVER: &str = "csi.kubevirt.io";
const CHAIN: &str = "KubeVirt CSI driver";
const STORAGE: &str = "storage.k8s.io/v1";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io/v1";
const SETTINGS: &str = "/platform/kubevirt/storageDriver";
const DEFAULT_CLASS: &str = "kubevirt-csi-infra-default";
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
/// Images of the containers, in their order.
const IMAGES: [&str; 3] = [
    "kubevirt-csi-driver",
    "csi-node-driver-registrar",
    "csi-livenessprobe",
];

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let kind = input.text(&format!("{SETTINGS}/type"));
    if !input.is_on(&["KubeVirt"]) || kind == "None" {
        return;
    }
    let account = |name| Object::create(service_account(NAMESPACE, name));
    let mut objects = vec![
        Object::create(namespace(NAMESPACE, &[])),
        account("kubevirt-csi-node-sa"),
    ];
    objects.extend(manifest(NODE_RBAC).into_iter().map(Object::enforce));
    objects.extend(manifest(CONTROLLER_RBAC).into_iter().map(Object::enforce));
    objects.push(account("kubevirt-csi-controller-sa"));
    desired.extend(objects.into_iter().map(|it| it.chained(CHAIN)));
    for document in manifest(NODE) {
        desired.attempt(daemon_set(input, document));
    }
    let classes = match kind {
        "Manual" => mapped_classes(input),
        _ => vec![
            default_class(input),
            snapshot_class("kubevirt-csi-snapshot", None),
        ],
    };
    desired.extend(classes.into_iter().map(|it| it.chained(CHAIN)));
    desired.add(driver().chained(CHAIN));
}

fn daemon_set(input: &Input<'_>, mut value: Value) -> Result<Object, Error> {
    let object = format!("DaemonSet {NAMESPACE}/kubevirt-csi-node");
    for (index, name) in IMAGES.into_iter().enumerate() {
        let image = input.image(&object, name)?;
        value["spec"]["template"]["spec"]["containers"][index]["image"] = json!(image);
    }
    Ok(Object::enforce(value).chained(CHAIN))
}

fn storage_class(name: &str, parameters: Value) -> Value {
    let mut value = bare(&Key::new(STORAGE, "StorageClass", "", name));
    value["provisioner"] = json!(DRIVER);
    value["parameters"] = parameters;
    value["allowVolumeExpansion"] = json!(true);
    value
}

fn default_class(input: &Input<'_>) -> Object {
    let mut value = storage_class(DEFAULT_CLASS, json!({ "bus": "scsi" }));
    let live = input.live(STORAGE, "StorageClass", "", DEFAULT_CLASS);
    let annotations = live.map_or(&Value::Null, |live| &live["metadata"]["annotations"]);
    // Users may choose another default.
    if annotations.get(IS_DEFAULT).is_none() {
        value["metadata"]["annotations"] = json!({ IS_DEFAULT: "true" });
    }
    Object::merge(value)
}

fn snapshot_class(name: &str, infra_class: Option<&str>) -> Object {
    let mut value = bare(&Key::new(SNAPSHOTS, "VolumeSnapshotClass", "", name));
    value["driver"] = json!(DRIVER);
    value["deletionPolicy"] = json!("Delete");
    if let Some(class) = infra_class {
        value["parameters"] = json!({ "infraSnapshotClassName": class });
    }
    Object::merge(value)
}

fn mapped_classes(input: &Input<'_>) -> Vec<Object> {
    let text = |mapping: &'_ Value, field: &str| mapping[field].as_str().unwrap_or("").to_owned();
    let mut classes = Vec::new();
    for mapping in input.list(&format!("{SETTINGS}/manual/storageClassMapping")) {
        let infra = text(mapping, "infraStorageClassName");
        let parameters = json!({ "bus": "scsi", "infraStorageClassName": infra });
        let name = text(mapping, "guestStorageClassName");
        classes.push(Object::merge(storage_class(&name, parameters)));
    }
    for mapping in input.list(&format!("{SETTINGS}/manual/volumeSnapshotClassMapping")) {
        let infra = text(mapping, "infraVolumeSnapshotClassName");
        let infra = Some(infra.as_str()).filter(|it| !it.is_empty());
        classes.push(snapshot_class(
            &text(mapping, "guestVolumeSnapshotClassName"),
            infra,
        ));
    }
    classes
}

fn driver() -> Object {
    let mut value = bare(&Key::new(STORAGE, "CSIDriver", "", DRIVER));
    value["spec"] = json!({
        "attachRequired": true,
        "podInfoOnMount": true,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
    });
    Object::merge(value)
}
