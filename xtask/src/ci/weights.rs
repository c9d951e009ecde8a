//! What each end-to-end test needs of the machine. A test that is not listed takes one unit and no other resource.

use super::schedule::Cost;

/// Tests that start all components of a control plane on a node. On two processors nothing else runs beside them.
const WHOLE: [&str; 4] = ["hosted_cluster::", "karpenter::", "olm::", "rollout::"];
/// Tests that start nodes with dozens of pods, or several sets of managers.
const HEAVY: [&str; 12] = [
    "cluster_api::",
    "guest::",
    "highly_available::",
    "install::nodes::",
    "login::",
    // With the kinds of all providers, an API server takes the memory of two.
    "migration_fleet::",
    "migration_live::",
    "node::",
    "readme::",
    "platforms::",
    "providers::",
    "tunnel::",
];
/// Tests that run Cluster API's development provider, which has fixed ports: one at a time on a machine.
const PROVIDER: [&str; 4] = [
    "cluster_api::",
    "fidelity::",
    "install::",
    "migration_managers::",
];
/// Times of the longest tests in seconds, for a machine that has not run them yet.
const LONGEST: [(&str, u64); 17] = [
    ("hosted_cluster::", 600),
    ("tunnel::", 600),
    ("hosted_clusters_api::", 300),
    ("cluster_api::", 300),
    ("migration_managers::", 300),
    ("migration::", 250),
    ("providers::", 240),
    ("migration_fleet::", 300),
    ("conversion::", 140),
    ("lost_responses::", 105),
    ("hosted_clusters_preview::", 100),
    ("rollout::", 400),
    ("olm::", 400),
    ("control_plane_at_rest::", 150),
    ("operator::", 150),
    ("login::", 150),
    ("fidelity::", 120),
];

/// What a test costs; `name` is `module::test`.
pub(super) fn cost(name: &str) -> Cost {
    let among = |list: &[&str]| list.iter().any(|prefix| name.starts_with(prefix));
    let units = match (among(&WHOLE), among(&HEAVY)) {
        (true, _) => 3,
        (false, true) => 2,
        (false, false) => 1,
    };
    Cost {
        units,
        provider: among(&PROVIDER),
    }
}

/// How long a test takes, as far as that is known without having run it.
pub(super) fn first_estimate(name: &str) -> u64 {
    let known = LONGEST.iter().find(|(prefix, _)| name.starts_with(prefix));
    known.map_or(1, |&(_, seconds)| seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_a_test_that_exists() {
        let tests = crate::sources::root().join("e2e/tests");
        let names = WHOLE.iter().chain(&HEAVY).chain(&PROVIDER);
        for name in names.chain(LONGEST.iter().map(|(name, _)| name)) {
            let path = name.trim_end_matches("::").replace("::", "/");
            let exists = [path.clone(), format!("{path}.rs")]
                .iter()
                .any(|path| tests.join(path).exists());
            assert!(exists, "there is no test {name}");
        }
    }

    #[test]
    fn heavy_tests_take_more_than_others() {
        assert_eq!(cost("rollout::all_components").units, 3);
        assert_eq!(cost("node::pods::pods_run").units, 2);
        assert_eq!(cost("crds::a_real_api_server").units, 1);
        assert!(cost("fidelity::nothing_is_lost").provider);
        assert!(first_estimate("hosted_cluster::a") > first_estimate("crds::a"));
    }
}
