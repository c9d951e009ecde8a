//! Pods that may be in the namespaces of control planes and of operators.

use crate::{Finding, Invariant, Observed};

/// Components of a control plane, and what their operators create.
const OF_CONTROL_PLANES: [&str; 75] = [
    "aws-cloud-controller-manager",
    "aws-ebs-csi-driver-controller",
    "aws-ebs-csi-driver-operator",
    "aws-node-termination-handler",
    "azure-cloud-controller-manager",
    "azure-disk-csi-driver-controller",
    "azure-disk-csi-driver-operator",
    "azure-file-csi-driver-controller",
    "azure-file-csi-driver-operator",
    "capi-provider",
    "catalog-operator",
    "certified-operators-catalog",
    "certified-operators-catalog-rollout",
    "cloud-credential-operator",
    "cloud-network-config-controller",
    "cluster-api",
    "cluster-autoscaler",
    "cluster-image-registry-operator",
    "cluster-network-operator",
    "cluster-node-tuning-operator",
    "cluster-policy-controller",
    "cluster-storage-operator",
    "cluster-version-operator",
    "community-operators-catalog",
    "community-operators-catalog-rollout",
    "control-plane-operator",
    "control-plane-pki-operator",
    "csi-snapshot-controller",
    "csi-snapshot-controller-operator",
    "dns-operator",
    "endpoint-resolver",
    "etcd",
    "etcd-backup",
    "featuregate-generator",
    "gcp-cloud-controller-manager",
    "gcp-pd-csi-driver-controller",
    "gcp-pd-csi-driver-operator",
    "hosted-cluster-config-operator",
    "ignition-server",
    "ignition-server-proxy",
    "ingress-operator",
    "karpenter",
    "karpenter-operator",
    "konnectivity-agent",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-storage-version-migrator",
    "kubevirt-cloud-controller-manager",
    "kubevirt-csi-controller",
    "machine-approver",
    "manila-csi-driver-operator",
    "metrics-proxy",
    "multus-admission-controller",
    "network-node-identity",
    "oauth-openshift",
    "olm-collect-profiles",
    "olm-operator",
    "openshift-apiserver",
    "openshift-controller-manager",
    "openshift-oauth-apiserver",
    "openshift-route-controller-manager",
    "openstack-cinder-csi-driver-controller",
    "openstack-cinder-csi-driver-operator",
    "openstack-cloud-controller-manager",
    "openstack-manila-csi-controllerplugin",
    "ovnkube-control-plane",
    "packageserver",
    "powervs-block-csi-driver-controller",
    "powervs-block-csi-driver-operator",
    "powervs-cloud-controller-manager",
    "redhat-operators-catalog",
    "redhat-operators-catalog-rollout",
    "router",
    "shared-resource-csi-driver-operator",
];
/// What an installation of the operators creates.
const OF_OPERATORS: [&str; 7] = [
    "capi-conversion-webhook-shim",
    "etcd-backup",
    "external-dns",
    "hypershift-operator",
    "operator",
    "operator-legacy",
    "router",
];

pub(crate) fn pods(observed: &Observed) -> Vec<Finding> {
    let own = observed.pods().map(|pod| (pod, &OF_CONTROL_PLANES[..]));
    let operators = observed.operators().map(|pod| (pod, &OF_OPERATORS[..]));
    let unknown = own
        .chain(operators)
        .filter(|(pod, known)| !known.contains(&pod.component()));
    let findings = unknown.map(|(pod, _)| {
        let problem = format!("no component is named {:?}", pod.component());
        pod.finding(Invariant::KnownPods, problem)
    });
    findings.collect()
}
