//! The owners of a target: its original's, those that moved under their new names and UIDs.

use crate::groups::Groups;
use crate::inventory::target_key;
use crate::object::{Object, ObjectKey, Owner};
use crate::snapshot::Snapshot;

/// The owners of a target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owners {
    /// Those that can be named now.
    pub found: Vec<Owner>,
    /// The originals of owners without a target yet.
    pub missing: Vec<ObjectKey>,
}

/// The owners that the target of `original` has to have. An owner that is not there (any more) is left out, as the garbage
/// collector would.
pub fn owners(groups: &Groups, snapshot: &Snapshot, original: &Object) -> Owners {
    let mut owners = Owners::default();
    for owner in original.owners() {
        if !groups.is_source(owner.group()) {
            owners.found.push(owner);
            continue;
        }
        let Some(moved) = resolve(snapshot, original, &owner) else {
            continue;
        };
        match target_key(groups, moved.key()).and_then(|key| snapshot.get(&key)) {
            Some(target) => owners.found.push(renamed(groups, &owner, target)),
            None => owners.missing.push(moved.key().clone()),
        }
    }
    owners
}

/// The object that an owner reference means: by UID, and nothing but the name may differ in its namespace.
pub(crate) fn resolve<'s>(
    snapshot: &'s Snapshot,
    dependent: &Object,
    owner: &Owner,
) -> Option<&'s Object> {
    let found = snapshot.by_uid(&owner.uid)?;
    let namespace = &found.key().namespace;
    let reachable = namespace.is_empty() || *namespace == dependent.key().namespace;
    (reachable && owner.key(namespace) == *found.key()).then_some(found)
}

/// The same reference to an owner's target.
pub(crate) fn renamed(groups: &Groups, owner: &Owner, target: &Object) -> Owner {
    Owner {
        api_version: groups.swap_api_version(&owner.api_version),
        uid: target.uid().to_owned(),
        ..owner.clone()
    }
}
