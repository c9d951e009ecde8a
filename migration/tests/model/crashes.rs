//! Killed after every step, refused at every write, failing at every task: in the end everything is old, or everything
//! new.

use migration::failure::Reason;
use migration::machine::Task;

use crate::fake_cluster::{End, FakeCluster, Script};
use crate::server::Server;
use crate::{full, tiny};

/// Every how many cases one is tried: in the gate a sample, and all of them with `MIGRATION_MODEL=all`.
pub(crate) fn every(sample: usize) -> usize {
    let all = std::env::var("MIGRATION_MODEL").is_ok_and(|which| which == "all");
    if all { 1 } else { sample }
}

/// In the end nothing is half: everything new, and equal; or everything as it was.
pub(crate) fn check_end(before: &Server, fake_cluster: &FakeCluster, end: &End, case: &str) {
    assert!(!fake_cluster.locked, "{case}: the lock is held");
    assert_eq!(fake_cluster.collected, [], "{case}: garbage was collected");
    match end {
        End::Done => {
            assert!(
                fake_cluster.committed && fake_cluster.is_new(),
                "{case}: half of it is old"
            );
            let count = |server: &Server| server.store.objects().count();
            assert_eq!(count(&fake_cluster.server), count(before), "{case}");
        }
        End::RolledBack(_) => {
            assert!(!fake_cluster.committed, "{case}: committed and undone");
            same(before, fake_cluster, case);
        }
        End::Blocked(why) => panic!("{case}: blocked: {why}"),
    }
}

/// Every object is as it was; the first difference is reported.
fn same(before: &Server, fake_cluster: &FakeCluster, case: &str) {
    let (before, after) = (before.content(), fake_cluster.server.content());
    for (key, object) in &before {
        assert_eq!(
            after.get(key),
            Some(object),
            "{case}: {key} is not as it was ({})",
            fake_cluster.failure
        );
    }
    assert_eq!(
        after.len(),
        before.len(),
        "{case}: there is more than there was"
    );
}

/// Runs a script and checks its end.
fn play(fake_cluster: &FakeCluster, script: Script, case: &str) -> (FakeCluster, End) {
    let mut played = fake_cluster.clone().with(script);
    let end = played.run();
    check_end(&fake_cluster.server, &played, &end, case);
    (played, end)
}

/// Checks M02 and M20c.
#[test]
fn a_crash_after_every_journal_write_is_completed() {
    for (name, fake_cluster, step) in [("tiny", tiny(), 1), ("full", full(), 5)] {
        let (whole, end) = play(&fake_cluster, Script::default(), name);
        assert_eq!(end, End::Done, "{}", whole.failure);
        let steps = whole.steps;
        for at in (1..=steps).step_by(every(step)) {
            let script = Script {
                killed_after: vec![at],
                collecting: true,
                ..Script::default()
            };
            let (whole, end) = play(
                &fake_cluster,
                script,
                &format!("{name}, killed after {at} of {steps}"),
            );
            assert_eq!(end, End::Done, "{}", whole.failure);
        }
    }
}

/// Check M02.
#[test]
fn two_crashes_are_completed() {
    let fake_cluster = tiny();
    let steps = play(&fake_cluster, Script::default(), "tiny").0.steps;
    for first in 1..=steps {
        for second in (first + 1..=steps + 1).step_by(every(13)) {
            let script = Script {
                killed_after: vec![first, second],
                ..Script::default()
            };
            let (_, end) = play(
                &fake_cluster,
                script,
                &format!("killed after {first} and {second}"),
            );
            assert_eq!(end, End::Done);
        }
    }
}

/// Checks M02 and M11.
#[test]
fn rejected_writes_and_crashes_during_rollback_are_undone() {
    for (name, fake_cluster, step) in [("tiny", tiny(), 5), ("full", full(), 29)] {
        let writes = play(&fake_cluster, Script::default(), name).0.writes.len();
        let mut undone = 0;
        for refused in (0..writes).step_by(every(step)) {
            let script = Script {
                refused_at: Some(refused),
                collecting: true,
                ..Script::default()
            };
            let case = format!("{name}, refused at {refused}");
            let (whole, end) = play(&fake_cluster, script.clone(), &case);
            if end == End::Done {
                continue;
            }
            assert_eq!(end, End::RolledBack(Reason::AdmissionDenied), "{case}");
            undone += 1;
            for at in (1..=whole.steps).step_by(every(step)) {
                let script = Script {
                    killed_after: vec![at],
                    ..script.clone()
                };
                play(&fake_cluster, script, &format!("{case}, killed after {at}"));
            }
        }
        assert!(
            undone * every(step) > writes / 3,
            "{name}: {undone} of {writes}"
        );
    }
}

#[test]
fn a_failing_task_before_the_commit_point_is_rolled_back() {
    for task in [
        Task::Lock,
        Task::Quiesce,
        Task::Deploy,
        Task::Health,
        Task::Commit,
    ] {
        for (name, fake_cluster, step) in [("tiny", tiny(), 3), ("full", full(), 41)] {
            let script = Script {
                failing: Some(task),
                collecting: true,
                ..Script::default()
            };
            let (whole, end) = play(
                &fake_cluster,
                script.clone(),
                &format!("{name}, {task:?} fails"),
            );
            assert_eq!(end, End::RolledBack(Reason::HealthCheckTimeout));
            for at in (1..=whole.steps).step_by(every(step)) {
                let script = Script {
                    killed_after: vec![at],
                    ..script.clone()
                };
                play(
                    &fake_cluster,
                    script,
                    &format!("{name}, {task:?} fails, killed after {at}"),
                );
            }
        }
    }
}

/// Check M10.
#[test]
fn failures_of_every_tenth_request_cost_only_time() {
    let fake_cluster = full();
    let ideal = play(&fake_cluster, Script::default(), "ideal")
        .0
        .writes
        .len();
    for seed in (0..200).step_by(every(8)) {
        let script = Script {
            faults: Some(10),
            collecting: seed % 2 == 0,
            ..Script::default()
        };
        let case = format!("seed {seed}");
        let mut played = fake_cluster.clone().with(script).seeded(seed);
        let end = played.run();
        assert_eq!(end, End::Done, "{case}");
        check_end(&fake_cluster.server, &played, &end, &case);
        assert!(
            played.writes.len() <= 2 * ideal,
            "{case}: {} writes",
            played.writes.len()
        );
    }
}
