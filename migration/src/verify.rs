//! What must be true at some point of a migration, or at every one, as functions that say what is not.
//!
//! A target is equal to its original but for these: what the server decides (UID, resource version, generation, age), whose
//! each field is (compared on its own: same managers), owners (compared on their own: same, renamed), the annotation of incomplete targets, and
//! `observedGeneration`, which counts the target's own generations.

mod equality;

use std::fmt;

use crate::groups::Groups;
use crate::inventory::{Inventory, originals, shared, target_key};
use crate::journal::{Fingerprint, Journal};
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;
use crate::target::{self, MIGRATED_FROM, order::Order};

pub use equality::differences;

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The object.
    pub object: ObjectKey,
    /// What is wrong with it.
    pub what: String,
}

// === impl Violation ===

impl Violation {
    fn new(object: &ObjectKey, what: impl Into<String>) -> Self {
        Self {
            object: object.clone(),
            what: what.into(),
        }
    }

    pub(crate) fn made(object: &ObjectKey) -> Self {
        Self::new(object, "was made in the meantime")
    }

    pub(crate) fn changed(object: &ObjectKey) -> Self {
        Self::new(object, "was changed in the meantime")
    }

    pub(crate) fn deleted(object: &ObjectKey) -> Self {
        Self::new(object, "is being deleted")
    }

    pub(crate) fn owns(object: &ObjectKey, kept: &ObjectKey) -> Self {
        Self::new(object, format!("owns {kept}"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object, self.what)
    }
}

/// Invariant: no object has only missing owners, or the garbage collector deletes it. At every instant.
///
/// An owner of a kind that was not listed counts as alive: who knows.
pub fn no_missing_owners(snapshot: &Snapshot) -> Vec<Violation> {
    let missing = snapshot.objects().filter(|object| {
        let owners = object.owners();
        !owners.is_empty() && !owners.iter().any(|owner| is_alive(snapshot, object, owner))
    });
    missing
        .map(|object| Violation::new(object.key(), "has only missing owners"))
        .collect()
}

/// Invariant: an object has one controller at most. At every instant.
pub fn one_controller(snapshot: &Snapshot) -> Vec<Violation> {
    let many = snapshot.objects().filter(|object| {
        let owners = object.owners();
        owners.iter().filter(|owner| owner.controller).count() > 1
    });
    many.map(|object| Violation::new(object.key(), "has two controllers"))
        .collect()
}

/// Invariant: no client sees the deletion of an original that still has finalizers, so that no provider deletes a
/// machine. At every instant at which no controller of the source types runs.
pub fn no_finalizer_is_run(groups: &Groups, snapshot: &Snapshot) -> Vec<Violation> {
    let shown = originals(groups, snapshot).filter(|object| is_deleted_by_others(object));
    shown
        .map(|object| Violation::new(object.key(), "is being deleted and has finalizers"))
        .collect()
}

/// Invariant: every object is accounted for.
pub fn all_accounted(inventory: &Inventory, snapshot: &Snapshot) -> Vec<Violation> {
    let known: std::collections::BTreeSet<_> = inventory
        .entries
        .iter()
        .map(|entry| &entry.object)
        .collect();
    let objects = snapshot.objects().map(Object::key);
    objects
        .filter(|key| !known.contains(key))
        .map(|key| Violation::new(key, "is not in the inventory"))
        .collect()
}

/// Invariant: objects that are not the migration's business stay as they are, to the resource version.
pub fn untouched<'s>(
    before: &'s Snapshot,
    after: &'s Snapshot,
    business: impl Fn(&Object) -> bool + 's,
) -> Vec<Violation> {
    let others = before.objects().filter(|object| !business(object));
    others
        .filter(|object| after.get(object.key()) != Some(object))
        .map(|object| Violation::new(object.key(), "was changed"))
        .collect()
}

/// At the end of the copy: every original has a target that is complete and equal, owned alike, of the same age order.
pub fn copied(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Vec<Violation> {
    let mut violations: Vec<_> = originals(groups, snapshot)
        .filter_map(|original| target_violation(groups, journal, snapshot, original))
        .collect();
    for original in shared(groups, snapshot) {
        if target_of(groups, snapshot, original).is_none() {
            violations.push(Violation::new(original.key(), "has no target"));
        }
    }
    let broken = Order::of(groups, snapshot).broken(groups, snapshot);
    violations.extend(
        broken
            .iter()
            .map(|key| Violation::new(key, "has a target of the wrong age")),
    );
    violations
}

/// Originals that are not what they were when they were copied, that came since, or that went.
pub fn changed_originals(
    groups: &Groups,
    journal: &Journal,
    snapshot: &Snapshot,
) -> Vec<Violation> {
    let Some(fingerprints) = &journal.originals else {
        return Vec::new();
    };
    let mut found = 0;
    let mut violations = Vec::new();
    for original in originals(groups, snapshot) {
        let before = fingerprints.get(original.key());
        found += usize::from(before.is_some());
        match before {
            None => violations.push(Violation::made(original.key())),
            Some(_) if is_deleted_by_others(original) => {
                violations.push(Violation::deleted(original.key()));
            }
            Some(before) if before != Fingerprint::of(original) => {
                violations.push(Violation::changed(original.key()));
            }
            Some(_) => {}
        }
    }
    if found < fingerprints.len() && violations.is_empty() {
        violations.extend(orphan_targets(groups, journal, snapshot));
    }
    violations
}

/// Targets of originals that existed when the copy began and no longer do.
fn orphan_targets(groups: &Groups, journal: &Journal, snapshot: &Snapshot) -> Vec<Violation> {
    let targets = snapshot
        .objects()
        .filter(|object| groups.is_target(&object.key().group));
    let keys = targets.filter_map(|target| target_key(groups, target.key()));
    keys.filter(|key| {
        let was = journal.originals.as_ref().and_then(|all| all.get(key));
        was.is_some() && snapshot.get(key).is_none()
    })
    .map(|key| Violation::new(&key, "was deleted in the meantime"))
    .collect()
}

/// Whether an object is being deleted, and not by the migration, which takes finalizers off first.
pub(crate) fn is_deleted_by_others(object: &Object) -> bool {
    object.is_being_deleted() && object.finalizers().iter().any(|name| *name != "orphan")
}

fn target_of<'s>(groups: &Groups, snapshot: &'s Snapshot, original: &Object) -> Option<&'s Object> {
    snapshot.get(&target_key(groups, original.key())?)
}

fn target_violation(
    groups: &Groups,
    journal: &Journal,
    snapshot: &Snapshot,
    original: &Object,
) -> Option<Violation> {
    let violation = |what: String| Some(Violation::new(original.key(), what));
    let Some(target) = target_of(groups, snapshot, original) else {
        return violation("has no target".to_owned());
    };
    if target.annotation(MIGRATED_FROM).is_some() {
        return violation("has a target that is not complete".to_owned());
    }
    let current = journal.current(original.key());
    let differences = differences(groups, original, target, current);
    if !differences.is_empty() {
        return violation(format!(
            "has a target that differs at {}",
            differences.join(", ")
        ));
    }
    let mut desired = target::owners(groups, snapshot, original).found;
    let mut found = target.owners();
    desired.sort();
    found.sort();
    if desired != found {
        return violation("has a target with other owners".to_owned());
    }
    let served = snapshot.resource(&target.key().group, &target.key().kind)?;
    let desired = target::managed_fields(groups, snapshot, original, &served.served);
    if !desired.is_empty() && !equality::same_managers(&desired, &target.managed_fields()) {
        return violation("has a target with other field owners".to_owned());
    }
    None
}

fn is_alive(snapshot: &Snapshot, object: &Object, owner: &crate::object::Owner) -> bool {
    let Some(resource) = snapshot.resource(owner.group(), &owner.kind) else {
        return true;
    };
    let namespace = if resource.namespaced {
        object.key().namespace.as_str()
    } else {
        ""
    };
    let found = snapshot.get(&owner.key(namespace));
    found.is_some_and(|found| found.uid() == owner.uid)
}
