//! Access to the management cluster's API server: tokens, and the label that NetworkPolicies admit.

use crate::pod::Pod;
use crate::{Finding, Invariant, Observed, items, text};

pub(crate) const LABEL: &str = "hypershift.openshift.io/need-management-kas-access";
/// The components that use it.
const USERS: [&str; 22] = [
    "aws-ebs-csi-driver-operator",
    "capi-provider",
    "cloud-controller-manager",
    "cluster-api",
    "cluster-autoscaler",
    "cluster-network-operator",
    "cluster-node-tuning-operator",
    "cluster-storage-operator",
    "control-plane-operator",
    "control-plane-pki-operator",
    "csi-snapshot-controller-operator",
    "endpoint-resolver",
    "etcd",
    "featuregate-generator",
    "hosted-cluster-config-operator",
    "ignition-server",
    "karpenter",
    "karpenter-operator",
    "kubevirt-cloud-controller-manager",
    "kubevirt-csi-controller",
    "machine-approver",
    "olm-collect-profiles",
];

fn needs_access(pod: &Pod<'_>) -> bool {
    USERS.contains(&pod.component())
}

pub(crate) fn labels(observed: &Observed) -> Vec<Finding> {
    observed.each_pod(Invariant::ManagementAccess, |pod| {
        let has = pod.label(LABEL) == "true";
        match (needs_access(pod), has) {
            (true, false) => Some(format!("it has no label {LABEL}")),
            (false, true) => Some(format!("it has the label {LABEL}, and needs no access")),
            (true, true) | (false, false) => None,
        }
    })
}

/// A template says whether a token is mounted; a pod has a volume with it, which the API server adds.
pub(crate) fn tokens(observed: &Observed) -> Vec<Finding> {
    observed.each_pod(Invariant::ManagementTokens, |pod| {
        if needs_access(pod) {
            return None;
        }
        if pod.is_template() {
            let found = &pod.spec["automountServiceAccountToken"];
            return (found != false).then(|| format!("automountServiceAccountToken is {found}"));
        }
        let volumes = items(&pod.spec["volumes"]).iter();
        let mut names = volumes.map(|volume| text(&volume["name"]));
        let found = names.find(|name| name.starts_with("kube-api-access-"))?;
        Some(format!("it has the volume {found}"))
    })
}
