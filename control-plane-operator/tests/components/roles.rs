//! Roles of components stay within the control plane.

use control_plane_operator::components;
use support::testing::writes_hosted_clusters;

use crate::pod_security::variants;

/// Check T05: operators act on HostedClusters and NodePools with their own permissions.
#[test]
fn no_role_of_a_component_writes_hosted_clusters() {
    for (name, input) in variants() {
        let mut rules = 0;
        for component in components::all() {
            for file in input.component(component).unwrap() {
                for rule in file.object["rules"].as_array().into_iter().flatten() {
                    rules += 1;
                    assert!(
                        !writes_hosted_clusters(rule),
                        "{name}: {}: {rule}",
                        file.path
                    );
                }
            }
        }
        assert!(rules >= 10, "{name}: {rules}");
    }
}
