//! How much it takes.

use std::collections::BTreeMap;

use migration::plan::Plan;
use migration::preflight::Facts;

use crate::world::{End, World};
use crate::{build, full};

/// Check M01.
#[test]
fn writes_match_the_plan_and_grow_with_machines() {
    for workers in [1, 10, 100] {
        let mut world: World = build(|build| build.full(3, workers));
        let plan = Plan::new(&world.groups, &world.server.store, &Facts::default());
        assert_eq!(world.run(), End::Done);
        let mut by_purpose: BTreeMap<_, usize> = BTreeMap::new();
        for purpose in &world.writes {
            *by_purpose.entry(format!("{purpose:?}")).or_default() += 1;
        }
        assert_eq!(
            world.writes.len(),
            plan.writes,
            "{workers} workers: {by_purpose:?}"
        );
    }
}

#[test]
fn every_object_of_a_full_cluster_is_accounted_for() {
    let world = full();
    let plan = Plan::new(&world.groups, &world.server.store, &Facts::default());
    assert_eq!(
        migration::verify::all_accounted(&plan.inventory, &world.server.store),
        []
    );
    assert_eq!(
        plan.inventory.entries.len(),
        world.server.store.objects().count()
    );
}
