//! References between objects other than ownership.

use std::collections::BTreeMap;

use serde_json::Value;

use super::is_original;
use crate::groups::Groups;
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// A field of one object that names another one of the groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Where, as a JSON pointer.
    pub at: String,
    /// What it names.
    pub to: ObjectKey,
}

/// Objects of the whole cluster that are referred to, and by whom.
pub(super) type Uses = BTreeMap<ObjectKey, ObjectKey>;

/// The references of an object to objects of the source's groups, in `spec` and `status`: whatever has a kind, a name and
/// a group beside each other.
pub fn references(groups: &Groups, object: &Object) -> Vec<Reference> {
    let mut found = Vec::new();
    for part in ["spec", "status"] {
        if let Some(value) = object.body().get(part) {
            collect(groups, object.key(), value, &format!("/{part}"), &mut found);
        }
    }
    found
}

/// The objects of the whole cluster that originals refer to, by a full reference or by `identityRef`, which names no
/// group.
pub(super) fn used_by(groups: &Groups, snapshot: &Snapshot) -> Uses {
    let mut uses = Uses::new();
    let global: Vec<_> = snapshot
        .objects()
        .map(Object::key)
        .filter(|key| groups.is_source(&key.group) && key.namespace.is_empty())
        .collect();
    if global.is_empty() {
        return uses;
    }
    for object in snapshot.objects().filter(|o| is_original(groups, o)) {
        let named = references(groups, object)
            .into_iter()
            .map(|reference| ObjectKey {
                namespace: String::new(),
                ..reference.to
            });
        for key in named.chain(identity(object)) {
            if global.contains(&&key) {
                uses.entry(key).or_insert_with(|| object.key().clone());
            }
        }
    }
    uses
}

/// What a provider acts as: of the same group as the object.
fn identity(object: &Object) -> Option<ObjectKey> {
    Some(ObjectKey {
        group: object.key().group.clone(),
        kind: object.text("/spec/identityRef/kind")?.to_owned(),
        namespace: String::new(),
        name: object.text("/spec/identityRef/name")?.to_owned(),
    })
}

fn collect(groups: &Groups, from: &ObjectKey, value: &Value, at: &str, found: &mut Vec<Reference>) {
    match value {
        Value::Object(fields) => {
            if let Some(to) = reference(groups, from, value) {
                let at = at.to_owned();
                found.push(Reference { at, to });
            }
            for (name, field) in fields {
                collect(groups, from, field, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(groups, from, item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn reference(groups: &Groups, from: &ObjectKey, value: &Value) -> Option<ObjectKey> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let group = match text("apiGroup") {
        Some(group) => group,
        None => text("apiVersion")?.split_once('/')?.0,
    };
    let key = ObjectKey {
        group: group.to_owned(),
        kind: text("kind")?.to_owned(),
        namespace: text("namespace").unwrap_or(&from.namespace).to_owned(),
        name: text("name")?.to_owned(),
    };
    groups.is_source(group).then_some(key)
}
