//! The end of the originals: dependents lose their old owners, originals lose finalizers and owners, and then they go.
//!
//! Each of the three is done for all objects before the next begins, so that no object has only missing owners in between.

use std::collections::BTreeSet;

use serde_json::json;

use super::forward::{describe, wave};
use super::{Act, Format, Propagation, Purpose, Step, Write};
use crate::groups::Groups;
use crate::inventory::originals;
use crate::journal::{Fingerprint, Journal};
use crate::object::{Object, ObjectKey};
use crate::reparent;
use crate::snapshot::Snapshot;
use crate::verify::{Violation, is_deleted_by_others};

/// The next step; none when no original is left.
pub(super) fn next(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Option<Step> {
    let kept = kept(groups, journal, snapshot);
    let keys: BTreeSet<_> = kept.iter().map(|violation| &violation.object).collect();
    let going: Vec<_> = originals(groups, snapshot)
        .filter(|object| !keys.contains(object.key()))
        .collect();
    let step = wave(drop_owners(groups, snapshot)).or_else(|| delete(snapshot, &going));
    step.or_else(|| (!kept.is_empty()).then(|| Step::Blocked(blocked(&kept))))
}

/// The writes by which dependents lose the owners that go. One that has no new owner yet gets it first.
pub(super) fn drop_owners(groups: &Groups, snapshot: &Snapshot) -> Vec<Write> {
    let dependents = reparent::dependents(groups, snapshot);
    let writes = dependents.filter_map(|object| {
        reparent::add(groups, snapshot, object).or_else(|| reparent::drop(groups, snapshot, object))
    });
    writes.collect()
}

/// Takes finalizers and owners off all of them, and then deletes them; none when there is none.
pub(super) fn delete(snapshot: &Snapshot, objects: &[&Object]) -> Option<Step> {
    let strips = objects.iter().filter_map(|object| strip(snapshot, object));
    if let Some(step) = wave(strips.collect()) {
        return Some(step);
    }
    let alive = objects.iter().filter(|object| !object.is_being_deleted());
    if let Some(step) = wave(alive.filter_map(|object| end(snapshot, object)).collect()) {
        return Some(step);
    }
    objects.first().map(|object| {
        Step::Wait(format!(
            "waiting for the garbage collector to delete {} and {} more",
            object.key(),
            objects.len() - 1
        ))
    })
}

fn strip(snapshot: &Snapshot, object: &Object) -> Option<Write> {
    let bare =
        object.owners().is_empty() && object.finalizers().iter().all(|name| *name == "orphan");
    let body = json!({"metadata": {
        "resourceVersion": object.resource_version(),
        "finalizers": null,
        "ownerReferences": null,
    }});
    let act = Act::Patch {
        format: Format::Merge,
        subresource: None,
        body,
    };
    write(snapshot, object, Purpose::Strip, act).filter(|_| !bare)
}

/// Nothing names the object as its owner any more, so nothing has to be orphaned, and it is deleted in one step. Where not all
/// kinds could be read this is unknown.
fn end(snapshot: &Snapshot, object: &Object) -> Option<Write> {
    let act = Act::Delete {
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
        propagation: match snapshot.unread().next() {
            None => Propagation::Background,
            Some(_) => Propagation::Orphan,
        },
    };
    write(snapshot, object, Purpose::Delete, act)
}

fn write(snapshot: &Snapshot, object: &Object, purpose: Purpose, act: Act) -> Option<Write> {
    let key = object.key();
    Some(Write {
        resource: snapshot.resource(&key.group, &key.kind)?.clone(),
        key: key.clone(),
        purpose,
        act,
    })
}

/// The originals that do not go: those that another client has changed, made or deleted since they were copied, and all that
/// own them.
fn kept(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Vec<Violation> {
    let mut kept: Vec<Violation> = originals(groups, snapshot)
        .filter_map(|object| changed(journal, object))
        .collect();
    let mut seen: BTreeSet<ObjectKey> = kept.iter().map(|kept| kept.object.clone()).collect();
    let mut at = 0;
    while let Some(key) = kept.get(at).map(|kept| kept.object.clone()) {
        at += 1;
        let owners = snapshot.get(&key).map(Object::owners).unwrap_or_default();
        let owners = owners
            .iter()
            .filter_map(|owner| snapshot.by_uid(&owner.uid));
        for owner in owners.filter(|owner| groups.is_source(&owner.key().group)) {
            if seen.insert(owner.key().clone()) {
                kept.push(Violation::owns(owner.key(), &key));
            }
        }
    }
    kept
}

fn changed(journal: &Journal, original: &Object) -> Option<Violation> {
    let before = journal
        .originals
        .as_ref()
        .and_then(|all| all.get(original.key()));
    match before {
        None => Some(Violation::made(original.key())),
        Some(_) if is_deleted_by_others(original) => Some(Violation::deleted(original.key())),
        Some(before) if before != Fingerprint::of(original) => {
            Some(Violation::changed(original.key()))
        }
        Some(_) => None,
    }
}

fn blocked(kept: &[Violation]) -> String {
    format!(
        "{}: apply what was meant to the object in the other group, then take finalizers and owners off this one and \
         delete it",
        describe(kept)
    )
}
