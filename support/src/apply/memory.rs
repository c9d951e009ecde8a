//! What an [`Applier`](super::Applier) may leave out, because a watch tells it.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ApiResource;
use serde_json::Value;

/// Which part of an object is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// All but the status.
    Main,
    /// The status.
    Status,
}

/// A desired object, and who applies it.
#[derive(Debug, Clone, Copy)]
pub struct Desired<'a> {
    /// Its kind.
    pub resource: &'a ApiResource,
    /// The object, with `metadata`.
    pub object: &'a Value,
    /// The part that is applied.
    pub part: Part,
    /// The field manager.
    pub manager: &'a str,
}

/// What is known of an object without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It is as this apply has left it.
    Settled,
    /// It does not exist, as far as the watch has told.
    Absent,
    /// Nothing: it has to be read.
    Nothing,
}

/// Remembers what was applied, and compares it with what is watched.
pub trait Memory: Debug + Send + Sync {
    /// What is known of an object.
    fn known(&self, desired: Desired<'_>) -> Known;

    /// An apply has left the object like this.
    fn applied(&self, desired: Desired<'_>, found: &ObjectMeta);
}

// === impl Part ===

impl Part {
    pub(super) fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
        }
    }
}
