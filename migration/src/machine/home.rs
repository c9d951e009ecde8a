//! Copying back: changes of the controllers of the target types before a rollback are applied to the originals.
//!
//! A machine that they created is kept, one that they deleted is deleted, and their status is kept. Where another client has changed the
//! original as well, the original wins: it is what users know.

use std::time::Duration;

use super::{Act, Propagation, Purpose, Step, Wave, Write, retire};
use crate::groups::Groups;
use crate::inventory::{originals, target_key};
use crate::journal::{Fingerprint, Journal};
use crate::object::Object;
use crate::snapshot::Snapshot;
use crate::target::{self, MIGRATED_FROM, Way};
use crate::verify::differences;

/// The next step; none when everything is copied back. `inverse` is the way from targets to originals.
pub(super) fn next(
    groups: &Groups,
    inverse: &Groups,
    journal: &Journal,
    snapshot: &Snapshot,
) -> Result<Option<Step>, String> {
    let mut writes = Vec::new();
    for owners_later in [false, true] {
        let way = Way {
            groups: inverse,
            snapshot,
            owners_later,
        };
        for target in originals(inverse, snapshot) {
            writes.extend(homewards(groups, way, journal, target)?);
        }
        if !writes.is_empty() {
            let wait_first = Duration::ZERO;
            return Ok(Some(Step::Write(Wave { wait_first, writes })));
        }
    }
    let gone: Vec<_> = originals(groups, snapshot)
        .filter(|original| was_deleted(groups, journal, snapshot, original))
        .collect();
    Ok(retire::delete(snapshot, &gone))
}

/// The next write for the original of one target.
fn homewards(
    groups: &Groups,
    way: Way<'_>,
    journal: &Journal,
    target: &Object,
) -> Result<Option<Write>, String> {
    // An incomplete target has no changes of its own.
    if target.annotation(MIGRATED_FROM).is_some() {
        return Ok(None);
    }
    let Some(key) = target_key(way.groups, target.key()) else {
        return Ok(None);
    };
    let before = journal.originals.as_ref().and_then(|all| all.get(&key));
    let current = journal.current(&key);
    let step = match way.snapshot.get(&key) {
        // Another client has deleted the original: it stays deleted.
        None if before.is_some() => return Ok(None),
        None => way.next(target, current),
        Some(original) if original.annotation(MIGRATED_FROM).is_some() => way.next(target, current),
        Some(original) if before != Some(Fingerprint::of(original)) => return Ok(None),
        Some(original) if target.is_being_deleted() && !original.is_being_deleted() => {
            return Ok(end(way.snapshot, original));
        }
        // Compared as the copy was: what a copy leaves out is no change.
        Some(original) if !differences(groups, original, target, current).is_empty() => {
            let update = way.update(target, original);
            update.map(|write| target::Next::Write(Box::new(write)))
        }
        Some(_) => return Ok(None),
    };
    match step.map_err(|error| error.to_string())? {
        target::Next::Write(write) => Ok(Some(*write)),
        target::Next::Owner | target::Next::Complete => Ok(None),
    }
}

/// Whether the controllers of the target types have deleted the target, to the end.
fn was_deleted(groups: &Groups, journal: &Journal, snapshot: &Snapshot, original: &Object) -> bool {
    let target = target_key(groups, original.key()).and_then(|key| snapshot.get(&key));
    let before = journal
        .originals
        .as_ref()
        .and_then(|all| all.get(original.key()));
    target.is_none() && before == Some(Fingerprint::of(original))
}

/// A deletion that is under way continues here: with its finalizers, for the controllers of the source types to run.
fn end(snapshot: &Snapshot, original: &Object) -> Option<Write> {
    let key = original.key();
    Some(Write {
        resource: snapshot.resource(&key.group, &key.kind)?.clone(),
        key: key.clone(),
        purpose: Purpose::BringHome,
        act: Act::Delete {
            uid: original.uid().to_owned(),
            resource_version: original.resource_version().to_owned(),
            propagation: Propagation::Background,
        },
    })
}
