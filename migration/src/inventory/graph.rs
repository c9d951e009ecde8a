//! References between objects other than ownership.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::is_original;
use crate::groups::Groups;
use crate::object::{Object, ObjectKey};
use crate::snapshot::Snapshot;

/// Fields that name the identity that a provider acts as, and the one that an identity is assumed from.
const IDENTITIES: [&str; 2] = ["identityRef", "sourceIdentityRef"];
/// The type in a reference to the kind of identities of the whole cluster on OpenStack.
const OPENSTACK_TYPE: &str = "ClusterIdentity";
const OPENSTACK_IDENTITY: &str = "OpenStackClusterIdentity";

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

/// The objects of the whole cluster that originals refer to, by a full reference or by one to an identity, and those that
/// these refer to.
pub(super) fn used_by(groups: &Groups, snapshot: &Snapshot) -> Uses {
    let mut uses = Uses::new();
    let is_global = |key: &ObjectKey| groups.is_source(&key.group) && key.namespace.is_empty();
    if !snapshot.objects().any(|object| is_global(object.key())) {
        return uses;
    }
    let originals = snapshot.objects().filter(|o| is_original(groups, o));
    let mut referrers: VecDeque<_> = originals.collect();
    while let Some(object) = referrers.pop_front() {
        let named = references(groups, object)
            .into_iter()
            .map(|reference| ObjectKey {
                namespace: String::new(),
                ..reference.to
            });
        for key in named.chain(identities(object)) {
            let found = snapshot.get(&key).filter(|found| is_global(found.key()));
            let Some(found) = found else {
                continue;
            };
            if let Entry::Vacant(entry) = uses.entry(key) {
                entry.insert(object.key().clone());
                // An identity may be assumed from another one.
                referrers.push_back(found);
            }
        }
    }
    uses
}

/// What a provider acts as, wherever the object or its template says so: of the same group, which is not named.
fn identities(object: &Object) -> Vec<ObjectKey> {
    let mut found = Vec::new();
    if let Some(spec) = object.body().get("spec") {
        collect_identities(object.key(), spec, &mut found);
    }
    found
}

fn collect_identities(from: &ObjectKey, value: &Value, found: &mut Vec<ObjectKey>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if IDENTITIES.contains(&name.as_str()) {
                    found.extend(identity(from, field));
                }
                collect_identities(from, field, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect_identities(from, item, found);
            }
        }
        _ => {}
    }
}

/// An identity of the whole cluster: AWS names its kind, OpenStack a type, which may be a Secret.
fn identity(from: &ObjectKey, reference: &Value) -> Option<ObjectKey> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str);
    let kind = match text("kind") {
        Some(kind) => kind,
        None if text("type")? == OPENSTACK_TYPE => OPENSTACK_IDENTITY,
        None => return None,
    };
    Some(ObjectKey {
        group: from.group.clone(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: text("name")?.to_owned(),
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
