//! The components that a cluster with everything has on AWS.

use control_plane_operator::components;

use crate::hosted_clusters_faults::platforms;

/// The components that a public cluster on AWS has, sorted.
pub(crate) fn expected() -> Vec<&'static str> {
    let declared = components::all().iter().map(|component| component.name);
    let is_present = |name: &&str| platforms::components().all(|absent| absent != *name);
    let mut all: Vec<_> = declared.filter(is_present).collect();
    all.sort_unstable();
    all
}

#[test]
fn absent_components_are_declared() {
    let all: Vec<_> = components::all().iter().map(|it| it.name).collect();
    for name in platforms::components() {
        assert!(all.contains(&name), "{name} is no component");
    }
    assert_eq!(
        expected().len() + platforms::components().count(),
        all.len()
    );
}
