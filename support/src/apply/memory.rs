//! Requests that an [`Applier`](super::Applier) can skip because of watched objects.

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
    /// It is unchanged since this apply.
    Settled,
    /// It does not exist, according to the watch.
    Absent,
    /// Nothing: it has to be read.
    Nothing,
}

/// Remembers what was applied, and compares it with what is watched.
pub trait Memory: Debug + Send + Sync {
    /// What is known of an object.
    fn known(&self, desired: Desired<'_>) -> Known;

    /// An apply has left the object like this. `previous` is the resource version of the object that the desired one was
    /// compared with, if there was one.
    fn applied(&self, desired: Desired<'_>, previous: Option<&str>, found: &ObjectMeta);

    /// Whether there is nothing to prune: this object was [read as absent](Self::absent), and none was watched since.
    fn is_absent(&self, resource: &ApiResource, namespace: &str, name: &str) -> bool;

    /// An object that is not desired does not exist, or is not ours.
    fn absent(&self, resource: &ApiResource, namespace: &str, name: &str);
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
