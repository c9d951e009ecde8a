//! New owners for objects that do not move but are owned by ones that do.
//!
//! There is an existing owner at every instant: the new one is added to the old one, and then the old one is removed.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::groups::Groups;
use crate::inventory::{is_original, target_key};
use crate::machine::{Purpose, Write};
use crate::object::{Object, Owner};
use crate::snapshot::Snapshot;
use crate::target::owners::{renamed, resolve};
use crate::target::{self, guard, json_patch, rekeyed, set, set_owners};

/// How the owners of a dependent change.
struct Owned {
    /// The list, with every new owner beside its old one.
    both: Vec<Owner>,
    /// New UIDs by old ones.
    uids: BTreeMap<String, String>,
    /// UIDs of owners that move.
    old: Vec<String>,
}

/// The objects that do not move and have an owner that does.
pub fn dependents<'s>(
    groups: &'s Groups,
    snapshot: &'s Snapshot,
) -> impl Iterator<Item = &'s Object> {
    let stays = |object: &&Object| {
        let group = &object.key().group;
        !groups.is_source(group) && !groups.is_target(group)
    };
    let objects = snapshot.objects().filter(stays);
    objects.filter(|object| !owned(groups, snapshot, object).old.is_empty())
}

/// The write that gives a dependent its new owners beside the old; none when it has them, or when they are not there.
///
/// Only one owner may say that it is the controller: the new one takes that over.
pub fn add(groups: &Groups, snapshot: &Snapshot, dependent: &Object) -> Option<Write> {
    let owned = owned(groups, snapshot, dependent);
    if owned.both == dependent.owners() {
        return None;
    }
    Some(Write {
        resource: snapshot
            .resource(&dependent.key().group, &dependent.key().kind)?
            .clone(),
        key: dependent.key().clone(),
        purpose: Purpose::AddOwner,
        act: set_owners(dependent, &owned.both),
    })
}

/// The write that takes the old owners from a dependent that has the new ones; none when it has no old one.
///
/// An owner whose target is gone has no successor, and is removed, too.
pub fn drop(groups: &Groups, snapshot: &Snapshot, dependent: &Object) -> Option<Write> {
    let owned = owned(groups, snapshot, dependent);
    if owned.old.is_empty() {
        return None;
    }
    let kept = owned
        .both
        .into_iter()
        .filter(|owner| !owned.old.contains(&owner.uid));
    let kept: Vec<_> = kept.map(|owner| owner.to_value()).collect();
    let mut patch = vec![guard(dependent), owners_patch(kept)];
    let entries = entries(dependent, &owned.uids);
    if !entries.is_empty() {
        patch.push(set("/metadata/managedFields", entries));
    }
    Some(Write {
        resource: snapshot
            .resource(&dependent.key().group, &dependent.key().kind)?
            .clone(),
        key: dependent.key().clone(),
        purpose: Purpose::DropOwner,
        act: json_patch(None, patch),
    })
}

fn owners_patch(owners: Vec<Value>) -> Value {
    if owners.is_empty() {
        json!({"op": "remove", "path": "/metadata/ownerReferences"})
    } else {
        set("/metadata/ownerReferences", owners)
    }
}

/// The dependent's field owners without the migration: who owned the list of owners owns the new ones.
fn entries(dependent: &Object, uids: &BTreeMap<String, String>) -> Vec<Value> {
    let mut entries = rekeyed(dependent, uids);
    let pointer = "/fieldsV1/f:metadata/f:ownerReferences";
    for new in uids.values() {
        let key = target::key(new);
        let owns = |entry: &Value, name: &str| {
            entry
                .pointer(pointer)
                .and_then(|owners| owners.get(name))
                .is_some()
        };
        if entries.iter().any(|entry| owns(entry, &key)) {
            continue;
        }
        let list = entries.iter_mut().find(|entry| owns(entry, "."));
        if let Some(owners) = list.and_then(|entry| entry.pointer_mut(pointer)) {
            owners[key] = json!({});
        }
    }
    entries
}

fn owned(groups: &Groups, snapshot: &Snapshot, dependent: &Object) -> Owned {
    let before = dependent.owners();
    let mut owned = Owned {
        both: Vec::with_capacity(before.len()),
        uids: BTreeMap::new(),
        old: Vec::new(),
    };
    for owner in &before {
        let moved = resolve(snapshot, dependent, owner).filter(|found| is_original(groups, found));
        let Some(moved) = moved else {
            owned.both.push(owner.clone());
            continue;
        };
        owned.old.push(owner.uid.clone());
        let target = target_key(groups, moved.key()).and_then(|key| snapshot.get(&key));
        let Some(target) = target else {
            owned.both.push(owner.clone());
            continue;
        };
        owned
            .uids
            .insert(owner.uid.clone(), target.uid().to_owned());
        owned.both.push(Owner {
            controller: false,
            ..owner.clone()
        });
        let there = before.iter().any(|other| other.uid == target.uid());
        if !there {
            owned.both.push(renamed(groups, owner, target));
        }
    }
    give_control(&before, &mut owned);
    owned
}

/// The successor of an owner that was the controller is the controller.
fn give_control(before: &[Owner], owned: &mut Owned) {
    let controllers = before.iter().filter(|owner| owner.controller);
    let successors: Vec<_> = controllers
        .filter_map(|owner| owned.uids.get(&owner.uid))
        .collect();
    for owner in &mut owned.both {
        if successors.contains(&&owner.uid) {
            owner.controller = true;
        }
    }
}
