//! The components that a cluster with everything has on AWS.

use control_plane_operator::components;

/// Components that no public cluster on AWS has, with the reason. Their workloads are written as all others are.
pub(crate) const ABSENT: [(&str, &str); 7] = [
    ("azure-cloud-controller-manager", "platform Azure"),
    ("gcp-cloud-controller-manager", "platform GCP"),
    ("kubevirt-cloud-controller-manager", "platform KubeVirt"),
    ("kubevirt-csi-controller", "platform KubeVirt"),
    ("openstack-cloud-controller-manager", "platform OpenStack"),
    ("powervs-cloud-controller-manager", "platform PowerVS"),
    (
        "router",
        "private access, or Routes with names of the cluster's own",
    ),
];

/// All others, sorted.
pub(crate) fn expected() -> Vec<&'static str> {
    let declared = components::all().iter().map(|component| component.name);
    let is_present = |name: &&str| ABSENT.iter().all(|(absent, _)| absent != name);
    let mut all: Vec<_> = declared.filter(is_present).collect();
    all.sort_unstable();
    all
}

#[test]
fn absent_components_are_declared() {
    let all: Vec<_> = components::all().iter().map(|it| it.name).collect();
    for (name, reason) in ABSENT {
        assert!(all.contains(&name), "{name} ({reason}) is no component");
    }
    assert_eq!(expected().len() + ABSENT.len(), all.len());
}
