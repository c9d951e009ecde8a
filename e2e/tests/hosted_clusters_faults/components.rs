//! The components that a cluster with everything has on AWS.

use control_plane_operator::components;

use crate::hosted_clusters_faults::platforms;

/// Components that no cluster has: the API does not offer their platforms. Their workloads are written as all others are.
const UNOFFERED: [&str; 2] = [
    "gcp-cloud-controller-manager",
    "openstack-cloud-controller-manager",
];

/// Components that no public cluster on AWS has.
fn absent() -> impl Iterator<Item = &'static str> {
    platforms::components().chain(UNOFFERED)
}

/// All others, sorted.
pub(crate) fn expected() -> Vec<&'static str> {
    let declared = components::all().iter().map(|component| component.name);
    let is_present = |name: &&str| absent().all(|absent| absent != *name);
    let mut all: Vec<_> = declared.filter(is_present).collect();
    all.sort_unstable();
    all
}

#[test]
fn absent_components_are_declared() {
    let all: Vec<_> = components::all().iter().map(|it| it.name).collect();
    for name in absent() {
        assert!(all.contains(&name), "{name} is no component");
    }
    assert_eq!(expected().len() + absent().count(), all.len());
}
