//! Whose each field of a target is: the same managers' as of its original.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FIELD_MANAGER;
use super::owners::resolve;
use crate::groups::Groups;
use crate::inventory::target_key;
use crate::object::Object;
use crate::snapshot::Snapshot;

/// The entries of `managedFields` that a target has to have: its original's, less the migration's own and those of versions
/// that the server could not read.
pub fn managed_fields(
    groups: &Groups,
    snapshot: &Snapshot,
    original: &Object,
    served: &[String],
) -> Vec<Value> {
    let uids = new_uids(groups, snapshot, original);
    let mut entries = rekeyed(original, &uids);
    entries.retain(|entry| {
        let api_version = entry["apiVersion"].as_str().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        served.iter().any(|served| served == version)
    });
    for entry in &mut entries {
        if let Some(Value::String(api_version)) = entry.get_mut("apiVersion") {
            *api_version = groups.swap_api_version(api_version);
        }
    }
    entries
}

/// An object's entries without the migration's own, in which references to owners are keyed by their new UIDs.
pub fn rekeyed(object: &Object, uids: &BTreeMap<String, String>) -> Vec<Value> {
    let mut entries = object.managed_fields();
    entries.retain(|entry| entry["manager"] != FIELD_MANAGER);
    for entry in &mut entries {
        let owners = entry.pointer_mut("/fieldsV1/f:metadata/f:ownerReferences");
        if let Some(Value::Object(owners)) = owners {
            rekey(owners, uids);
        }
    }
    entries
}

/// The UIDs of the targets of an object's owners, by those of the owners.
fn new_uids(groups: &Groups, snapshot: &Snapshot, original: &Object) -> BTreeMap<String, String> {
    let owners = original.owners().into_iter().filter_map(|owner| {
        let moved = resolve(snapshot, original, &owner)?;
        let target = snapshot.get(&target_key(groups, moved.key())?)?;
        Some((owner.uid, target.uid().to_owned()))
    });
    owners.collect()
}

fn rekey(owners: &mut Map<String, Value>, uids: &BTreeMap<String, String>) {
    for (old, new) in uids {
        if let Some(fields) = owners.remove(&key(old)) {
            owners.insert(key(new), fields);
        }
    }
}

/// How an entry names an owner: by a key of its list.
pub(crate) fn key(uid: &str) -> String {
    format!(r#"k:{{"uid":"{uid}"}}"#)
}
