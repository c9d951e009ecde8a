//! Forward: phase after phase.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::{Act, Format, Observation, Purpose, SiteState, Step, Task, Wave, Write, retire};
use crate::failure::Reason;
use crate::groups::Groups;
use crate::inventory::{originals, shared, target_key};
use crate::journal::{Failure, Fingerprints, Journal, Pause};
use crate::object::{Object, ObjectKey};
use crate::phase::Phase;
use crate::reparent;
use crate::snapshot::Snapshot;
use crate::target::order::{APART, Order};
use crate::target::{self, MIGRATED_FROM, Unconvertible, Way};
use crate::verify::{self, Violation};

/// The most violations that a failure names.
const MOST: usize = 3;

pub(super) fn next(groups: &Groups, journal: &Journal, observation: &Observation<'_>) -> Step {
    let snapshot = observation.snapshot;
    let enter = |phase| Step::Enter(Box::new(journal.enter(phase, observation.now)));
    match journal.phase {
        Phase::Plan => enter(Phase::Lock),
        Phase::Lock => site(Task::Lock, journal, observation, || enter(Phase::Pause)),
        Phase::Pause => pause(groups, journal, snapshot).unwrap_or_else(|| enter(Phase::Quiesce)),
        Phase::Quiesce => site(Task::Quiesce, journal, observation, || enter(Phase::Copy)),
        Phase::Copy => match copy(groups, journal, snapshot) {
            Ok(step) => step.unwrap_or_else(|| enter(Phase::VerifyCopy)),
            Err(failure) => fail(journal, observation.now, failure),
        },
        Phase::VerifyCopy => match verify(groups, journal, snapshot) {
            None => enter(Phase::Reparent),
            Some(failure) => fail(journal, observation.now, failure),
        },
        Phase::Reparent => add_owners(groups, snapshot).unwrap_or_else(|| enter(Phase::Deploy)),
        Phase::Deploy => site(Task::Deploy, journal, observation, || enter(Phase::Health)),
        Phase::Health => health(groups, journal, observation),
        Phase::Commit => site(Task::Commit, journal, observation, || enter(Phase::Retire)),
        Phase::Retire => {
            retire::next(groups, journal, snapshot).unwrap_or_else(|| enter(Phase::Finish))
        }
        Phase::Finish => finish(journal, observation),
    }
}

/// Has the site do a task, within the phase's time.
fn site(
    task: Task,
    journal: &Journal,
    observation: &Observation<'_>,
    then: impl FnOnce() -> Step,
) -> Step {
    match &observation.site {
        SiteState::Done => then(),
        SiteState::Failed(failure) => fail(journal, observation.now, failure.clone()),
        SiteState::NotAsked => Step::Site(task),
        SiteState::Waiting(what) => match overdue(journal, observation.now) {
            Some(reason) => {
                let message = format!("{} took too long: still {what}", journal.phase);
                fail(journal, observation.now, Failure::new(reason, message))
            }
            None => Step::Site(task),
        },
    }
}

fn overdue(journal: &Journal, now: i64) -> Option<Reason> {
    let spent = Duration::from_secs(u64::try_from(now - journal.phase_started).unwrap_or_default());
    let over = journal.phase.limit().is_some_and(|limit| spent > limit);
    over.then(|| Reason::of_timeout(journal.phase)).flatten()
}

/// Turns back; from the commit on that is not possible, and a person has to look. A commit that failed was not made.
fn fail(journal: &Journal, now: i64, failure: Failure) -> Step {
    let blocked = format!("{} failed: {}", journal.phase, failure.message);
    match journal.without_commit().fail(failure, now) {
        Ok(back) => Step::Enter(Box::new(back)),
        Err(_) => Step::Blocked(blocked),
    }
}

/// Notes how each Cluster is paused, and then pauses it.
fn pause(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Option<Step> {
    let mut pauses = BTreeMap::new();
    let mut writes = Vec::new();
    for cluster in originals(groups, snapshot).filter(|object| is_cluster(object)) {
        let before = pause_of(cluster);
        pauses.insert(cluster.key().to_string(), before);
        if before != Pause::Paused {
            writes.extend(set_pause(snapshot, cluster, Pause::Paused));
        }
    }
    pauses.retain(|key, _| !journal.pauses.contains_key(key));
    if pauses.is_empty() {
        return wave(writes);
    }
    let mut journal = journal.clone();
    journal.pauses.append(&mut pauses);
    Some(Step::Enter(Box::new(journal)))
}

/// Takes the originals' fingerprints, and then makes targets, wave after wave.
fn copy(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Result<Option<Step>, Failure> {
    if journal.originals.is_none() {
        untouched_yet(groups, snapshot)?;
        let mut journal = journal.clone();
        journal.originals = Some(Fingerprints::of(originals(groups, snapshot)));
        return Ok(Some(Step::Enter(Box::new(journal))));
    }
    for owners_later in [false, true] {
        let way = Way {
            groups,
            snapshot,
            owners_later,
        };
        let (step, waits) = copies(journal, way)?;
        if step.is_some() || !waits {
            return Ok(step);
        }
    }
    let message = "some targets wait for owners that do not exist: check the owners of the objects";
    Err(Failure::new(Reason::ResourceConversionFailed, message))
}

/// Nothing is being deleted, and the other group is empty: what is there later belongs to the migration.
fn untouched_yet(groups: &Groups, snapshot: &Snapshot) -> Result<(), Failure> {
    let deleted = originals(groups, snapshot).find(|object| object.is_being_deleted());
    if let Some(object) = deleted {
        return Err(conflict(&[Violation::deleted(object.key())]));
    }
    let there = snapshot.objects().find(|object| {
        let key = object.key();
        groups.is_target(&key.group) && !key.namespace.is_empty()
    });
    there.map_or(Ok(()), |object| {
        Err(Failure::new(
            Reason::Conflict,
            format!(
                "{} is there already, and not by this migration",
                object.key()
            ),
        ))
    })
}

/// The next wave of a copy, and whether some objects wait for the targets of their owners.
fn copies(journal: &Journal, way: Way<'_>) -> Result<(Option<Step>, bool), Failure> {
    let order = Order::of(way.groups, way.snapshot);
    let front = order.front(way.groups, way.snapshot);
    let mut wait_first = Duration::ZERO;
    let mut waits = false;
    let mut writes = Vec::new();
    let moved = originals(way.groups, way.snapshot).chain(shared(way.groups, way.snapshot));
    for original in moved {
        foreign(way, original)?;
        let next = way.next(original, journal.current(original.key()));
        match next.map_err(|error| unconvertible(&error))? {
            target::Next::Complete => {}
            target::Next::Owner => waits = true,
            target::Next::Write(write) => {
                let place = order.place(original.key());
                let place = place.filter(|_| write.purpose == Purpose::Create);
                if let Some((circle, step)) = place {
                    if front.get(circle) != Some(&step) {
                        continue;
                    }
                    if step > 0 {
                        wait_first = APART;
                    }
                }
                writes.push(*write);
            }
        }
    }
    let step = (!writes.is_empty()).then_some(Step::Write(Wave { wait_first, writes }));
    Ok((step, waits))
}

/// The annotation names another original: the target was made by another client, or by a migration that was not undone.
fn foreign(way: Way<'_>, original: &Object) -> Result<(), Failure> {
    let target = target_key(way.groups, original.key()).and_then(|key| way.snapshot.get(&key));
    let origin = target.and_then(|target| target.annotation(MIGRATED_FROM));
    if origin.is_none_or(|origin| origin == original.uid()) {
        return Ok(());
    }
    Err(Failure::new(
        Reason::Conflict,
        format!(
            "the target of {} was made of another object: delete it",
            original.key()
        ),
    ))
}

fn verify(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Option<Failure> {
    let changed = verify::changed_originals(groups, journal, snapshot);
    if !changed.is_empty() {
        return Some(conflict(&changed));
    }
    let violations = verify::copied(groups, journal, snapshot);
    (!violations.is_empty())
        .then(|| Failure::new(Reason::VerificationFailed, describe(&violations)))
}

/// New owners beside the old ones.
pub(super) fn add_owners(groups: &Groups, snapshot: &Snapshot) -> Option<Step> {
    let dependents = reparent::dependents(groups, snapshot);
    wave(
        dependents
            .filter_map(|object| reparent::add(groups, snapshot, object))
            .collect(),
    )
}

/// Lifts the pauses, waits for the health check of the hooks, and takes a last look at the originals before the commit.
fn health(groups: &Groups, journal: &Journal, observation: &Observation<'_>) -> Step {
    let snapshot = observation.snapshot;
    if journal.healthy {
        let changed = verify::changed_originals(groups, journal, snapshot);
        return if changed.is_empty() {
            Step::Enter(Box::new(journal.enter(Phase::Commit, observation.now)))
        } else {
            fail(journal, observation.now, conflict(&changed))
        };
    }
    let unpause = wave(unpauses(journal, snapshot, |key| target_key(groups, key)));
    unpause.unwrap_or_else(|| {
        site(Task::Health, journal, observation, || {
            Step::Enter(Box::new(journal.found_healthy()))
        })
    })
}

/// The writes that give Clusters the pauses that their originals had; `place` says which Cluster an original belongs to.
pub(super) fn unpauses(
    journal: &Journal,
    snapshot: &Snapshot,
    place: impl Fn(&ObjectKey) -> Option<ObjectKey>,
) -> Vec<Write> {
    let clusters = snapshot.objects().filter(|object| is_cluster(object));
    let writes = clusters.filter_map(|original| {
        let before = *journal.pauses.get(&original.key().to_string())?;
        let cluster = snapshot.get(&place(original.key())?)?;
        let now = pause_of(cluster);
        // Whatever is not paused runs: an absent field and a false one are equivalent.
        if before == now || now != Pause::Paused {
            return None;
        }
        set_pause(snapshot, cluster, before)
    });
    writes.collect()
}

fn finish(journal: &Journal, observation: &Observation<'_>) -> Step {
    let missing = verify::no_missing_owners(observation.snapshot);
    if !missing.is_empty() {
        return Step::Wait(describe(&missing));
    }
    site(Task::Finish, journal, observation, || Step::Done)
}

pub(super) fn wave(writes: Vec<Write>) -> Option<Step> {
    (!writes.is_empty()).then_some(Step::Write(Wave {
        wait_first: Duration::ZERO,
        writes,
    }))
}

pub(super) fn is_cluster(object: &Object) -> bool {
    object.key().kind == "Cluster"
}

pub(super) fn pause_of(cluster: &Object) -> Pause {
    match cluster.body().pointer("/spec/paused") {
        Some(paused) if paused.as_bool() == Some(true) => Pause::Paused,
        Some(paused) if !paused.is_null() => Pause::Running,
        _ => Pause::Absent,
    }
}

pub(super) fn set_pause(snapshot: &Snapshot, cluster: &Object, pause: Pause) -> Option<Write> {
    let (paused, purpose) = match pause {
        Pause::Paused => (json!(true), Purpose::Pause),
        Pause::Running => (json!(false), Purpose::Unpause),
        Pause::Absent => (json!(null), Purpose::Unpause),
    };
    let key = cluster.key();
    Some(Write {
        resource: snapshot.resource(&key.group, &key.kind)?.clone(),
        key: key.clone(),
        purpose,
        act: Act::Patch {
            format: Format::Merge,
            subresource: None,
            body: json!({
                "metadata": {"resourceVersion": cluster.resource_version()},
                "spec": {"paused": paused},
            }),
        },
    })
}

fn conflict(violations: &[Violation]) -> Failure {
    Failure::new(Reason::Conflict, describe(violations))
}

fn unconvertible(error: &Unconvertible) -> Failure {
    Failure::new(Reason::ResourceConversionFailed, error.to_string())
}

pub(super) fn describe(violations: &[Violation]) -> String {
    let mut text: Vec<_> = violations
        .iter()
        .take(MOST)
        .map(ToString::to_string)
        .collect();
    if violations.len() > MOST {
        text.push(format!("and {} more", violations.len() - MOST));
    }
    text.join("; ")
}
