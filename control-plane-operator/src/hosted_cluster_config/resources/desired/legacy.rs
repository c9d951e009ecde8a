//! Objects that earlier releases ran in the hosted cluster, and that run in the management cluster now.

use super::input::Input;
use super::object::{Desired, Key, Object};

const STORAGE: &str = "openshift-cluster-storage-operator";
const CSI_DRIVERS: &str = "openshift-cluster-csi-drivers";
const DEPLOYMENTS: [(&str, &str); 4] = [
    ("openshift-dns-operator", "dns-operator"),
    ("openshift-network-operator", "network-operator"),
    (
        "openshift-cluster-node-tuning-operator",
        "cluster-node-tuning-operator",
    ),
    (
        "openshift-image-registry",
        "cluster-image-registry-operator",
    ),
];
/// Storage, where OpenShift manages it.
const STORAGE_DEPLOYMENTS: [(&str, &str); 5] = [
    (STORAGE, "cluster-storage-operator"),
    (STORAGE, "csi-snapshot-controller-operator"),
    (CSI_DRIVERS, "aws-ebs-csi-driver-operator"),
    (CSI_DRIVERS, "aws-ebs-csi-driver-controller"),
    (STORAGE, "csi-snapshot-controller"),
];
const DEFINITIONS: [&str; 2] = [
    "machineconfigs.machineconfiguration.openshift.io",
    "machineconfigpools.machineconfiguration.openshift.io",
];

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let mut delete = |api: &str, kind: &str, namespace: &str, name: &str| {
        desired.add(Object::delete(&Key::new(api, kind, namespace, name)));
    };
    for (namespace, name) in DEPLOYMENTS {
        delete("apps/v1", "Deployment", namespace, name);
    }
    let rbac = "rbac.authorization.k8s.io/v1";
    delete(
        rbac,
        "ClusterRoleBinding",
        "",
        "default-account-cluster-network-operator",
    );
    if input.has_managed_storage() {
        for (namespace, name) in STORAGE_DEPLOYMENTS {
            delete("apps/v1", "Deployment", namespace, name);
        }
        for name in DEFINITIONS {
            delete(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "",
                name,
            );
        }
    }
}
