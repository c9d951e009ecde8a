//! One write, as it is sent.

use std::sync::Arc;

use serde_json::Value;

use crate::object::{ObjectKey, Resource};

/// One write to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The kind, with what the URL needs.
    pub resource: Arc<Resource>,
    /// Which object.
    pub key: ObjectKey,
    /// What for.
    pub purpose: Purpose,
    /// What is sent.
    pub act: Act,
}

/// What a write is for: for logs, for counts, and for tests that look over the shoulder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Purpose {
    /// Pauses a Cluster.
    Pause,
    /// Gives a Cluster the pause that it had.
    Unpause,
    /// Makes a target.
    Create,
    /// Gives a target its original's status.
    Status,
    /// Gives a target owners that were not there when it was made.
    Owners,
    /// Gives a target its original's field owners and removes the annotation: it is complete.
    Seat,
    /// Gives a dependent its new owner, beside the old one.
    AddOwner,
    /// Takes an owner from a dependent that has another one.
    DropOwner,
    /// Copies changes of the controllers of the target types to the originals, in a rollback.
    BringHome,
    /// Takes finalizers and owners off an object that is about to be deleted.
    Strip,
    /// Deletes.
    Delete,
}

/// The request.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// POST.
    Create(Value),
    /// PATCH. The body holds the resource version, so that a change in between is a conflict (409).
    Patch {
        /// The content type.
        format: Format,
        /// Which part of the object.
        subresource: Option<Subresource>,
        /// The patch.
        body: Value,
    },
    /// DELETE, with both as preconditions.
    Delete {
        /// `preconditions.uid`.
        uid: String,
        /// `preconditions.resourceVersion`.
        resource_version: String,
        /// `propagationPolicy`.
        propagation: Propagation,
    },
}

/// The content type of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/merge-patch+json`.
    Merge,
    /// `application/json-patch+json`.
    Json,
}

/// A part of an object with a URL of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subresource {
    /// `/status`.
    Status,
}

/// What happens to dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are left to the garbage collector: for objects that are known to have none.
    Background,
    /// They are kept, and lose the owner: for objects with dependents that could not all be read.
    Orphan,
}
