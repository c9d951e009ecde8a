//! The rollback: every phase is undone, last first. What cannot be undone yet is retried: nothing is left half done.

use super::forward::{add_owners, is_cluster, pause_of, set_pause, unpauses, wave};
use super::{Observation, Purpose, SiteState, Step, Task, Wave, Write, home, retire};
use crate::groups::Groups;
use crate::inventory::target_key;
use crate::journal::{Failure, Journal, Pause};
use crate::object::Object;
use crate::phase::Phase;
use crate::snapshot::Snapshot;
use crate::target::MIGRATED_FROM;

pub(super) fn next(
    groups: &Groups,
    journal: &Journal,
    failure: &Failure,
    observation: &Observation<'_>,
) -> Step {
    let snapshot = observation.snapshot;
    let enter = |phase| Step::Enter(Box::new(journal.enter(phase, observation.now)));
    match journal.phase {
        Phase::Plan => Step::RolledBack(failure.clone()),
        Phase::Lock => site(Task::Unlock, observation, || {
            Step::RolledBack(failure.clone())
        }),
        Phase::Pause => {
            let writes = unpauses(journal, snapshot, |key| Some(key.clone()));
            wave(writes).unwrap_or_else(|| enter(Phase::Lock))
        }
        Phase::Quiesce => site(Task::ScaleBack, observation, || enter(Phase::Pause)),
        Phase::Copy => {
            delete_targets(groups, journal, snapshot).unwrap_or_else(|| enter(Phase::Quiesce))
        }
        Phase::VerifyCopy => enter(Phase::Copy),
        Phase::Reparent => {
            give_back(groups, journal, snapshot).unwrap_or_else(|| enter(Phase::VerifyCopy))
        }
        Phase::Deploy => site(Task::RestoreTemplates, observation, || {
            enter(Phase::Reparent)
        }),
        Phase::Health => wave(pause_targets(groups, snapshot))
            .unwrap_or_else(|| site(Task::QuiesceAgain, observation, || enter(Phase::Deploy))),
        Phase::Commit | Phase::Retire | Phase::Finish => {
            Step::Blocked(format!("{} cannot be undone: complete it", journal.phase))
        }
    }
}

fn site(task: Task, observation: &Observation<'_>, then: impl FnOnce() -> Step) -> Step {
    match &observation.site {
        SiteState::Done => then(),
        SiteState::Failed(failure) => Step::Wait(failure.to_string()),
        SiteState::NotAsked | SiteState::Waiting(_) => Step::Site(task),
    }
}

fn pause_targets(groups: &Groups, snapshot: &Snapshot) -> Vec<Write> {
    let clusters = snapshot.objects().filter(|object| {
        is_cluster(object)
            && groups.is_target(&object.key().group)
            && pause_of(object) != Pause::Paused
    });
    clusters
        .filter_map(|cluster| set_pause(snapshot, cluster, Pause::Paused))
        .collect()
}

/// Copies back what the controllers of the target types did, if they ever ran, and then restores the owners of dependents.
fn give_back(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Option<Step> {
    let inverse = Groups::new(groups.table().clone(), groups.direction().inverse());
    let home = if journal.furthest >= Phase::Deploy {
        match home::next(groups, &inverse, journal, snapshot) {
            Ok(step) => step,
            Err(message) => Some(Step::Wait(message)),
        }
    } else {
        None
    };
    home.or_else(|| add_owners(&inverse, snapshot))
        .or_else(|| wave(retire::drop_owners(&inverse, snapshot)))
}

/// Deletes the targets: what was made of an original, or has one beside it. What other clients made stays.
fn delete_targets(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Option<Step> {
    let targets = snapshot
        .objects()
        .filter(|object| is_target(groups, journal, snapshot, object));
    let targets: Vec<_> = targets.collect();
    let step = retire::delete(snapshot, &targets)?;
    Some(match step {
        Step::Write(Wave { wait_first, writes }) => Step::Write(Wave {
            wait_first,
            writes: writes.into_iter().filter(is_end).collect(),
        }),
        other => other,
    })
}

fn is_end(write: &Write) -> bool {
    matches!(write.purpose, Purpose::Strip | Purpose::Delete)
}

fn is_target(groups: &Groups, journal: &Journal, snapshot: &Snapshot, object: &Object) -> bool {
    let key = object.key();
    if !groups.is_target(&key.group) || key.namespace.is_empty() {
        return false;
    }
    // Without fingerprints the copy never began, and nothing there is the migration's.
    let Some(fingerprints) = &journal.originals else {
        return false;
    };
    target_key(groups, key).is_some_and(|original| {
        fingerprints.get(&original).is_some()
            || snapshot.get(&original).is_some()
            || object.annotation(MIGRATED_FROM).is_some()
    })
}
