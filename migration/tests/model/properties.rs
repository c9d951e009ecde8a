//! Any objects, owning each other in any way, and any mishap: everything old, or everything new.

use migration::machine::Task;
use migration::object::Object;
use proptest::prelude::*;
use serde_json::json;

use crate::crashes::check_end;
use crate::fake_cluster::{End, FakeCluster, Script};
use crate::fixtures::{Build, key};

const KINDS: [&str; 6] = [
    "Cluster",
    "MachineSet",
    "Machine",
    "DevMachineTemplate",
    "IPAddress",
    "Secret",
];
const TASKS: [Task; 5] = [
    Task::Lock,
    Task::Quiesce,
    Task::Deploy,
    Task::Health,
    Task::Commit,
];

/// Kind, and the numbers of its owners: also of later ones, and of itself.
type Plan = Vec<(usize, Vec<usize>)>;

fn plans() -> impl Strategy<Value = Plan> {
    let object = (0..KINDS.len(), prop::collection::vec(0..10usize, 0..3));
    prop::collection::vec(object, 1..10)
}

fn scripts() -> impl Strategy<Value = Script> {
    (
        prop::collection::vec(1..150usize, 0..4),
        prop::option::of(0..60usize),
        prop::option::of(0..TASKS.len()),
        prop::option::of(3..12u64),
        any::<bool>(),
    )
        .prop_map(
            |(killed_after, refused_at, failing, faults, collecting)| Script {
                killed_after,
                refused_at,
                failing: failing.map(|index| TASKS[index]),
                faults,
                collecting,
                ..Script::default()
            },
        )
}

fn fake_cluster(plan: &Plan) -> FakeCluster {
    crate::build(|build| {
        let mut objects: Vec<Object> = Vec::new();
        for (index, (kind, _)) in plan.iter().enumerate() {
            let name = format!("o-{index}");
            objects.push(match KINDS[*kind] {
                "Secret" => build.secret(&name, &[]),
                kind => build.object(kind, &name, &[], json!({"n": index})),
            });
        }
        for (index, (_, owners)) in plan.iter().enumerate() {
            own(build, &objects, index, owners);
        }
    })
}

fn own(build: &mut Build<'_>, objects: &[Object], index: usize, owners: &[usize]) {
    let mut owners: Vec<_> = owners.iter().map(|owner| owner % objects.len()).collect();
    owners.sort_unstable();
    owners.dedup();
    let owners = owners.iter().enumerate().map(|(place, owner)| {
        let owner = &objects[*owner];
        let mut reference = json!({
            "apiVersion": owner.body()["apiVersion"], "kind": owner.key().kind, "name": owner.key().name,
            "uid": owner.uid(),
        });
        if place == 0 {
            reference["controller"] = true.into();
        }
        reference
    });
    let owners: Vec<_> = owners.collect();
    if !owners.is_empty() {
        build.server.change(objects[index].key(), |body| {
            body["metadata"]["ownerReferences"] = json!(owners);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Checks M04 and M10.
    #[test]
    fn any_owners_and_any_fault_end_on_one_side(plan in plans(), script in scripts(), seed in any::<u64>()) {
        let before = fake_cluster(&plan);
        let must_fail = script.failing.is_some();
        let may_fail = must_fail || script.refused_at.is_some();
        let mut played = before.clone().with(script).seeded(seed);
        let end = played.run();
        check_end(&before.server, &played, &end, "case");
        prop_assert!(end != End::Done || !must_fail);
        prop_assert!(end == End::Done || may_fail, "{}", played.failure);
    }
}

/// Check M04.
#[test]
fn mutual_owner_references_are_preserved() {
    let plan = vec![(2, vec![1]), (2, vec![2]), (2, vec![0]), (5, vec![1])];
    let mut fake_cluster = fake_cluster(&plan);
    assert_eq!(fake_cluster.run(), End::Done);
    let target = |name: &str| {
        let target = fake_cluster.target(&key("Machine", name)).expect("a key");
        fake_cluster.server.get(&target).expect("a target").clone()
    };
    for (object, owner) in [("o-0", "o-1"), ("o-1", "o-2"), ("o-2", "o-0")] {
        assert_eq!(
            target(object).owners()[0].uid,
            target(owner).uid(),
            "{object}"
        );
    }
    let secret = fake_cluster
        .server
        .get(&key("Secret", "o-3"))
        .expect("the secret");
    assert_eq!(secret.owners().len(), 1);
    assert_eq!(secret.owners()[0].uid, target("o-1").uid());
}
