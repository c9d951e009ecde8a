//! The target of an object: the same in the other group. An annotation says that it is not complete yet.
//!
//! ```text
//! (none) --Create--> annotated --Status--> annotated, with status --Owners--> ... --Seat--> complete, no annotation
//! ```
//!
//! By the annotation a process that continues after a crash recognises its own work; the last write removes it, so that nothing
//! of a migration stays in an object.

mod managed_fields;
pub mod order;
pub(crate) mod owners;
mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::groups::Groups;
use crate::inventory::target_key;
use crate::machine::{Act, Format, Purpose, Subresource, Write};
use crate::object::{Object, ObjectKey, Owner, Resource};
use crate::snapshot::Snapshot;

pub(crate) use managed_fields::key;
pub use managed_fields::{managed_fields, rekeyed};
pub use owners::{Owners, owners};
pub use status::{Current, status};

/// The field manager of all writes of a migration.
pub const FIELD_MANAGER: &str = "hypershift-migration";
/// The annotation on a target that is not complete: its original's UID.
pub const MIGRATED_FROM: &str = "hypershift.openshift.io/migrated-from";
/// The generation of an object that was just made.
const FIRST: i64 = 1;
/// What the server decides, and what is written apart.
pub(crate) const SERVERS_OWN: [&str; 9] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
];

/// An object that cannot have a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unconvertible {
    /// Its kind is not served in the other group.
    #[error(
        "{key} has no target: the server does not serve its kind in the other group; install that group's CRDs"
    )]
    NotServed {
        /// The object.
        key: ObjectKey,
    },
    /// Its kind is served in the other group, at other versions only.
    #[error(
        "{key} has no target: its kind is served at {version} here and not in the other group; derive that group's CRDs again"
    )]
    OtherVersion {
        /// The object.
        key: ObjectKey,
        /// The version that it is read at.
        version: String,
    },
}

/// What is to be done for an object's target next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This write.
    Write(Box<Write>),
    /// Nothing yet: an owner's target is not there.
    Owner,
    /// Nothing more.
    Complete,
}

/// The way from an object to its target.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// The groups, in the direction in which is copied.
    pub groups: &'a Groups,
    /// All objects.
    pub snapshot: &'a Snapshot,
    /// Whether a target may be made before its owners' targets are: for owners that own each other.
    pub owners_later: bool,
}

// === impl Way ===

impl Way<'_> {
    /// The next write for the target of `original`.
    pub fn next(&self, original: &Object, current: Current) -> Result<Next, Unconvertible> {
        let resource = self.resource(original)?;
        let key = target_key(self.groups, original.key()).ok_or_else(|| not_served(original))?;
        let Some(target) = self.snapshot.get(&key) else {
            return self.create(original, key);
        };
        if target.annotation(MIGRATED_FROM).is_none() {
            return Ok(Next::Complete);
        }
        let write = |purpose, act| {
            Ok(Next::Write(Box::new(Write {
                resource: resource.clone(),
                key: key.clone(),
                purpose,
                act,
            })))
        };
        if resource.has_status
            && let Some(act) = self.status(original, target, current)
        {
            return write(Purpose::Status, act);
        }
        let owners = owners(self.groups, self.snapshot, original);
        if !owners.missing.is_empty() {
            return Ok(Next::Owner);
        }
        if owners.found != target.owners() {
            return write(Purpose::Owners, set_owners(target, &owners.found));
        }
        write(Purpose::Seat, self.seat(original, target, &resource.served))
    }

    /// The body of the target's POST.
    pub fn body(&self, original: &Object) -> Result<Value, Unconvertible> {
        let resource = self.resource(original)?;
        let mut body = self.swapped(original);
        let owners = owners(self.groups, self.snapshot, original).found;
        if !owners.is_empty() {
            body["metadata"]["ownerReferences"] = owners.iter().map(Owner::to_value).collect();
        }
        body["metadata"]["annotations"][MIGRATED_FROM] = original.uid().into();
        if let Some(fields) = body.as_object_mut() {
            fields.remove("status");
        }
        if !resource.has_status
            && let Some(status) = status(self.groups, original, FIRST, Current::Exact)
        {
            body["status"] = status;
        }
        Ok(body)
    }

    /// The object under its other names, less what the server decides, and less its owners.
    pub fn swapped(&self, original: &Object) -> Value {
        let mut body = original.body().clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in SERVERS_OWN {
                metadata.remove(field);
            }
        }
        self.groups.swap_object(&original.key().kind, &mut body);
        body
    }

    /// What brings an existing, complete target to its original's content; the annotation is set, so that the rest follows.
    pub fn update(&self, original: &Object, target: &Object) -> Result<Write, Unconvertible> {
        let resource = self.resource(original)?;
        let mut body = self.swapped(original);
        body["metadata"]["annotations"][MIGRATED_FROM] = original.uid().into();
        let mut patch = vec![guard(target)];
        let parts = body.as_object().into_iter().flatten();
        let parts = parts.filter(|(name, _)| {
            let apart = resource.has_status && *name == "status";
            !apart && !["apiVersion", "kind", "metadata"].contains(&name.as_str())
        });
        patch.extend(parts.map(|(name, value)| set(&format!("/{name}"), value.clone())));
        for field in ["labels", "annotations", "finalizers"] {
            let pointer = format!("/metadata/{field}");
            match body.pointer(&pointer) {
                Some(value) => patch.push(set(&pointer, value.clone())),
                None if target.body().pointer(&pointer).is_some() => {
                    patch.push(json!({"op": "remove", "path": pointer}));
                }
                None => {}
            }
        }
        Ok(Write {
            resource,
            key: target.key().clone(),
            purpose: Purpose::BringHome,
            act: json_patch(None, patch),
        })
    }

    /// How the target's kind is served.
    pub fn resource(&self, original: &Object) -> Result<Arc<Resource>, Unconvertible> {
        let key = original.key();
        let group = self.groups.swap(&key.group);
        let resource = group.and_then(|group| self.snapshot.resource(group, &key.kind));
        let resource = resource.ok_or_else(|| not_served(original))?;
        let api_version = original.text("/apiVersion").unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if resource.version != version {
            return Err(Unconvertible::OtherVersion {
                key: key.clone(),
                version: version.to_owned(),
            });
        }
        Ok(resource.clone())
    }

    fn create(&self, original: &Object, key: ObjectKey) -> Result<Next, Unconvertible> {
        let waits = !owners(self.groups, self.snapshot, original)
            .missing
            .is_empty();
        if waits && !self.owners_later {
            return Ok(Next::Owner);
        }
        Ok(Next::Write(Box::new(Write {
            resource: self.resource(original)?,
            key,
            purpose: Purpose::Create,
            act: Act::Create(self.body(original)?),
        })))
    }

    fn status(&self, original: &Object, target: &Object, current: Current) -> Option<Act> {
        let desired = status(self.groups, original, target.generation(), current);
        if target.body().get("status") == desired.as_ref() {
            return None;
        }
        let change = match desired {
            Some(status) => set("/status", status),
            None => json!({"op": "remove", "path": "/status"}),
        };
        let patch = vec![guard(target), change];
        Some(json_patch(Some(Subresource::Status), patch))
    }

    fn seat(&self, original: &Object, target: &Object, served: &[String]) -> Act {
        let annotations = target.body().pointer("/metadata/annotations");
        let alone = annotations
            .and_then(Value::as_object)
            .map_or(0, serde_json::Map::len)
            == 1;
        let annotation = if alone {
            "/metadata/annotations".to_owned()
        } else {
            format!("/metadata/annotations/{}", MIGRATED_FROM.replace('/', "~1"))
        };
        let mut patch = vec![guard(target), json!({"op": "remove", "path": annotation})];
        let entries = managed_fields(self.groups, self.snapshot, original, served);
        // An empty list would make the next server-side apply a co-owner of everything.
        if !entries.is_empty() {
            patch.push(set("/metadata/managedFields", entries));
        }
        json_patch(None, patch)
    }
}

/// The operation that makes a patch a conflict when the object has changed in between.
pub(crate) fn guard(object: &Object) -> Value {
    json!({"op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()})
}

pub(crate) fn set(path: &str, value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({"op": "add", "path": path, "value": value})
}

pub(crate) fn json_patch(subresource: Option<Subresource>, operations: Vec<Value>) -> Act {
    Act::Patch {
        format: Format::Json,
        subresource,
        body: operations.into(),
    }
}

/// Replaces an object's owners.
pub(crate) fn set_owners(object: &Object, owners: &[Owner]) -> Act {
    let owners: Vec<_> = owners.iter().map(Owner::to_value).collect();
    Act::Patch {
        format: Format::Merge,
        subresource: None,
        body: json!({"metadata": {
            "resourceVersion": object.resource_version(),
            "ownerReferences": owners,
        }}),
    }
}

fn not_served(original: &Object) -> Unconvertible {
    Unconvertible::NotServed {
        key: original.key().clone(),
    }
}
