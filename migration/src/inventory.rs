//! A classification of every object of a snapshot: moved, given a new owner, or left, and why.

mod graph;

use serde::{Serialize, Serializer};

use crate::groups::Groups;
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;

pub use graph::{Reference, references};

/// Label by which controllers find what belongs to a cluster, without owning it.
use api::group::CLUSTER_NAME;

/// Kinds that record what happened, or who holds what, and are never moved.
const RECORDS: [&str; 2] = ["Event", "Lease"];

/// All objects of a snapshot, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Inventory {
    /// One entry for each object: none is forgotten.
    pub entries: Vec<Entry>,
}

/// One object and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The object.
    #[serde(serialize_with = "as_text")]
    pub object: ObjectKey,
    /// What becomes of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What becomes of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Verdict {
    /// It gets a target in the other group, and is deleted.
    Move {
        /// The target.
        #[serde(serialize_with = "as_text")]
        becomes: ObjectKey,
    },
    /// It gets a target in the other group, and stays: others may use it, too.
    Share {
        /// The target.
        #[serde(serialize_with = "as_text")]
        becomes: ObjectKey,
        /// Who refers to it.
        #[serde(serialize_with = "as_text")]
        used_by: ObjectKey,
    },
    /// It stays, and its owners among the moved objects are replaced by their targets.
    Reparent {
        /// The owners that move.
        #[serde(serialize_with = "as_texts")]
        owners: Vec<ObjectKey>,
    },
    /// Nothing happens to it.
    Leave {
        /// Why.
        reason: Left,
    },
}

/// Why nothing happens to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Left {
    /// It is in the groups that objects are moved to already.
    AlreadyMoved,
    /// It is of the groups, for the whole cluster, and nothing here refers to it.
    Unused,
    /// It records what happened, or who holds what.
    Record,
    /// Controllers find it by label or by name, and nothing in it names a group.
    FoundByLabel,
    /// It names a group and is not managed here; its owner has to change it. The places are JSON pointers.
    NamesGroup(Vec<String>),
    /// It has nothing to do with the groups.
    Unrelated,
}

// === impl Inventory ===

impl Inventory {
    /// Classifies every object.
    pub fn of(groups: &Groups, snapshot: &Snapshot) -> Self {
        let used = graph::used_by(groups, snapshot);
        let entries = snapshot.objects().map(|object| Entry {
            object: object.key().clone(),
            verdict: verdict(groups, snapshot, &used, object),
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// How many objects get a target.
    pub fn moved(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Move { .. } | Verdict::Share { .. }))
    }

    /// How many objects get a new owner.
    pub fn reparented(&self) -> usize {
        self.count(|verdict| matches!(verdict, Verdict::Reparent { .. }))
    }

    fn count(&self, matching: impl Fn(&Verdict) -> bool) -> usize {
        let verdicts = self.entries.iter().map(|entry| &entry.verdict);
        verdicts.filter(|verdict| matching(verdict)).count()
    }
}

/// Whether an object is moved: all objects in namespaces that are of the source's groups.
pub fn is_original(groups: &Groups, object: &Object) -> bool {
    groups.is_source(&object.key().group) && !object.key().namespace.is_empty()
}

/// The objects that are moved.
pub fn originals<'s>(
    groups: &'s Groups,
    snapshot: &'s Snapshot,
) -> impl Iterator<Item = &'s Object> {
    snapshot
        .objects()
        .filter(|object| is_original(groups, object))
}

/// The objects of the whole cluster that moved ones refer to: they get targets, and stay.
pub fn shared<'s>(groups: &'s Groups, snapshot: &'s Snapshot) -> Vec<&'s Object> {
    let used = graph::used_by(groups, snapshot);
    used.keys().filter_map(|key| snapshot.get(key)).collect()
}

/// The key of an object's target; none for kinds outside of the groups.
pub fn target_key(groups: &Groups, key: &ObjectKey) -> Option<ObjectKey> {
    groups.swap(&key.group).map(|group| key.in_group(group))
}

/// The owners of an object that are moved, as they are in the snapshot: same name and same UID.
pub fn moving_owners<'s>(
    groups: &Groups,
    snapshot: &'s Snapshot,
    object: &Object,
) -> Vec<&'s Object> {
    let owners = object.owners().into_iter().filter_map(|owner| {
        let found = snapshot.by_uid(&owner.uid)?;
        (found.key() == &owner.key(&object.key().namespace)).then_some(found)
    });
    owners.filter(|owner| is_original(groups, owner)).collect()
}

fn verdict(groups: &Groups, snapshot: &Snapshot, used: &graph::Uses, object: &Object) -> Verdict {
    let key = object.key();
    if groups.is_target(&key.group) {
        return Verdict::Leave {
            reason: Left::AlreadyMoved,
        };
    }
    if groups.is_source(&key.group) {
        let becomes = target_key(groups, key).unwrap_or_else(|| key.clone());
        return match used.get(key) {
            _ if !key.namespace.is_empty() => Verdict::Move { becomes },
            Some(referrer) => Verdict::Share {
                becomes,
                used_by: referrer.clone(),
            },
            None => Verdict::Leave {
                reason: Left::Unused,
            },
        };
    }
    let owners = moving_owners(groups, snapshot, object);
    if !owners.is_empty() {
        let owners = owners.into_iter().map(|owner| owner.key().clone());
        return Verdict::Reparent {
            owners: owners.collect(),
        };
    }
    Verdict::Leave {
        reason: left(groups, object),
    }
}

fn left(groups: &Groups, object: &Object) -> Left {
    if RECORDS.contains(&object.key().kind.as_str()) {
        return Left::Record;
    }
    let mut names = groups.mentions(object.body());
    // Owners and field owners are the migration's own business.
    names.retain(|at| !at.starts_with("/metadata/"));
    if !names.is_empty() {
        return Left::NamesGroup(names);
    }
    if object.label(CLUSTER_NAME).is_some() {
        return Left::FoundByLabel;
    }
    Left::Unrelated
}

fn as_text<S: Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

fn as_texts<S: Serializer>(keys: &[ObjectKey], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(ToString::to_string))
}
