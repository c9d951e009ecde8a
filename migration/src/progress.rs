//! How far a migration is, in counts.

use crate::groups::Groups;
use crate::inventory::{originals, target_key};
use crate::journal::{Course, Fingerprints, Journal};
use crate::object::Object;
use crate::phase::Phase;
use crate::reparent;
use crate::snapshot::Snapshot;
use crate::target::MIGRATED_FROM;

/// How far a phase is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The phase that is being done or undone.
    pub phase: Phase,
    /// How many objects are through.
    pub done: usize,
    /// How many there are. Zero in phases that do not count objects.
    pub total: usize,
    /// Human-readable, for example `copied 340 of 512 objects`.
    pub message: String,
}

// === impl Progress ===

impl Progress {
    /// How far a migration is, by its journal and by what was read last.
    pub fn of(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Self {
        let back = matches!(journal.course, Course::Back(_));
        let (done, total) = counts(groups, journal, snapshot);
        let message = match (said(journal.phase, back), total) {
            (said, 0) => said.to_owned(),
            (said, _) => format!("{said} {done} of {total} objects"),
        };
        Self {
            phase: journal.phase,
            done,
            total,
            message,
        }
    }
}

fn counts(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> (usize, usize) {
    let total = journal.originals.as_ref().map_or(0, Fingerprints::len);
    match (journal.phase, &journal.course) {
        (Phase::Copy, Course::Forward) => (complete(groups, snapshot), total),
        (Phase::Copy, Course::Back(_)) => (total.saturating_sub(targets(groups, snapshot)), total),
        (Phase::Retire, Course::Forward) => {
            let left = originals(groups, snapshot).count();
            (total.saturating_sub(left), total)
        }
        (Phase::Reparent, Course::Forward) => {
            let all = reparent::dependents(groups, snapshot);
            let done = all.filter(|object| reparent::add(groups, snapshot, object).is_none());
            (done.count(), reparent::dependents(groups, snapshot).count())
        }
        _ => (0, 0),
    }
}

fn complete(groups: &Groups, snapshot: &Snapshot) -> usize {
    let targets = originals(groups, snapshot)
        .filter_map(|original| snapshot.get(&target_key(groups, original.key())?));
    targets
        .filter(|target| target.annotation(MIGRATED_FROM).is_none())
        .count()
}

fn targets(groups: &Groups, snapshot: &Snapshot) -> usize {
    let keys = snapshot.objects().map(Object::key);
    keys.filter(|key| groups.is_target(&key.group) && !key.namespace.is_empty())
        .count()
}

fn said(phase: Phase, back: bool) -> &'static str {
    match (phase, back) {
        (Phase::Plan, _) => "planning",
        (Phase::Lock, false) => "taking the lock",
        (Phase::Lock, true) => "giving the lock back",
        (Phase::Pause, false) => "pausing the clusters",
        (Phase::Pause, true) => "giving the clusters their pause back",
        (Phase::Quiesce, false) => "stopping the controllers",
        (Phase::Quiesce, true) => "starting the old controllers again",
        (Phase::Copy, false) => "copied",
        (Phase::Copy, true) => "removed the copies of",
        (Phase::VerifyCopy, _) => "comparing the copies",
        (Phase::Reparent, false) => "gave new owners to",
        (Phase::Reparent, true) => "giving the old owners back",
        (Phase::Deploy, false) => "starting the new controllers",
        (Phase::Deploy, true) => "restoring the deployments",
        (Phase::Health, false) => "waiting for the cluster to be as healthy as before",
        (Phase::Health, true) => "stopping the new controllers",
        (Phase::Commit, _) => "committing",
        (Phase::Retire, _) => "retired",
        (Phase::Finish, _) => "finishing",
    }
}
