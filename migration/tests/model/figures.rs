//! How much it takes.

use std::collections::BTreeMap;

use migration::plan::Plan;
use migration::preflight::Facts;

use crate::fake_cluster::{End, FakeCluster};
use crate::{build, full};

/// Check M01.
#[test]
fn writes_match_the_plan_and_grow_with_machines() {
    for workers in [1, 10, 100] {
        let mut fake_cluster: FakeCluster = build(|build| build.full(3, workers));
        let plan = Plan::new(
            &fake_cluster.groups,
            &fake_cluster.server.store,
            &Facts::default(),
        );
        assert_eq!(fake_cluster.run(), End::Done);
        let mut by_purpose: BTreeMap<_, usize> = BTreeMap::new();
        for purpose in &fake_cluster.writes {
            *by_purpose.entry(format!("{purpose:?}")).or_default() += 1;
        }
        assert_eq!(
            fake_cluster.writes.len(),
            plan.writes,
            "{workers} workers: {by_purpose:?}"
        );
    }
}

#[test]
fn every_object_of_a_full_cluster_is_in_the_plan() {
    let fake_cluster = full();
    let plan = Plan::new(
        &fake_cluster.groups,
        &fake_cluster.server.store,
        &Facts::default(),
    );
    assert_eq!(
        migration::verify::all_accounted(&plan.inventory, &fake_cluster.server.store),
        []
    );
    assert_eq!(
        plan.inventory.entries.len(),
        fake_cluster.server.store.objects().count()
    );
}
