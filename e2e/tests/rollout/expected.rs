//! The components of a hosted cluster on AWS: all that are declared, but for those that something else has to request.

use control_plane_operator::components;

/// Components of other platforms.
const ELSEWHERE: [&str; 6] = [
    "azure-cloud-controller-manager",
    "gcp-cloud-controller-manager",
    "kubevirt-cloud-controller-manager",
    "kubevirt-csi-controller",
    "openstack-cloud-controller-manager",
    "powervs-cloud-controller-manager",
];
/// The component of a private control plane.
const PRIVATE: &str = "router";
/// Components of settings that the cluster gets later.
const OPTIONAL: [&str; 3] = [
    "aws-node-termination-handler",
    "endpoint-resolver",
    "metrics-proxy",
];

/// Those of a cluster without settings, sorted.
pub(crate) fn by_default() -> Vec<&'static str> {
    let mut all = with_options();
    all.retain(|name| !OPTIONAL.contains(name));
    all
}

/// Those of a cluster with optional ones, sorted.
pub(crate) fn with_options() -> Vec<&'static str> {
    let declared = components::all().iter();
    let mut all: Vec<_> = declared
        .map(|component| component.name)
        .filter(|name| !ELSEWHERE.contains(name) && *name != PRIVATE)
        .collect();
    all.sort_unstable();
    all
}
