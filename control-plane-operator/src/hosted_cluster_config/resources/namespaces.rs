//! Namespaces that OpenShift components expect, and that no operator in the cluster creates.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Their names.
const NAMES: [&str; 15] = [
    "openshift",
    "openshift-apiserver",
    "openshift-authentication",
    "openshift-cloud-controller-manager",
    "openshift-config",
    "openshift-config-managed",
    "openshift-controller-manager",
    "openshift-etcd",
    "openshift-infra",
    "openshift-ingress",
    "openshift-kube-apiserver",
    "openshift-kube-controller-manager",
    "openshift-kube-scheduler",
    "openshift-machine-config-operator",
    "openshift-route-controller-manager",
];

/// All of them.
pub(super) fn all() -> impl Iterator<Item = Namespace> {
    NAMES.into_iter().map(|name| Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    })
}
