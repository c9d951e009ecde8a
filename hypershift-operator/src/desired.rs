//! The desired state of an object of any kind.

use std::fmt;

use kube::Resource;
use kube::api::ApiResource;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cluster_ref::Id;
use crate::names::LONGEST_LABEL;

/// The desired state of an object.
#[derive(Clone, PartialEq)]
pub(crate) struct Desired {
    pub(crate) resource: ApiResource,
    pub(crate) body: Value,
    /// Its status, if no other controller writes it.
    pub(crate) status: Option<Value>,
}

// === impl Desired ===

/// Without the body: it may be a Secret's.
impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource.kind, self.name())
    }
}

impl Desired {
    /// An object of a kind with a Rust type, from its fields beside `metadata`.
    pub(crate) fn new<K: Resource<DynamicType = ()>>(
        namespace: &str,
        name: &str,
        fields: Value,
    ) -> Self {
        Self::of(ApiResource::erase::<K>(&()), namespace, name, fields)
    }

    /// An object of any kind. Without a namespace its name is for the whole cluster.
    pub(crate) fn of(resource: ApiResource, namespace: &str, name: &str, fields: Value) -> Self {
        let mut body = fields;
        body["metadata"]["name"] = json!(name);
        if !namespace.is_empty() {
            body["metadata"]["namespace"] = json!(namespace);
        }
        Self {
            resource,
            body,
            status: None,
        }
    }

    /// A typed object.
    pub(crate) fn typed<K>(object: &K) -> Self
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let body = serde_json::to_value(object)
            .expect("invariant: API objects have string keys and serialize to JSON");
        Self {
            resource: ApiResource::erase::<K>(&()),
            body,
            status: None,
        }
    }

    /// The same with a status.
    pub(crate) fn with_status(mut self, status: Value) -> Self {
        self.status = Some(status);
        self
    }

    /// The same with an annotation.
    pub(crate) fn annotated(mut self, key: &str, value: &str) -> Self {
        self.body["metadata"]["annotations"][key] = json!(value);
        self
    }

    /// The same with a label.
    pub(crate) fn labelled(mut self, key: &str, value: &str) -> Self {
        self.body["metadata"]["labels"][key] = json!(value);
        self
    }

    /// The same with labels that name the HostedCluster, as cluster-scoped RBAC has them.
    pub(crate) fn labelled_with_owner(self, owner: &Id) -> Self {
        let labels = [
            ("hypershift.openshift.io/owner.namespace", &owner.namespace),
            ("hypershift.openshift.io/owner.name", &owner.name),
        ];
        // Longer values are not valid in labels. The owner is also in the annotation, which decides.
        let labels = labels.into_iter();
        labels
            .filter(|(_, value)| value.len() <= LONGEST_LABEL)
            .fold(self, |desired, (key, value)| desired.labelled(key, value))
    }

    pub(crate) fn name(&self) -> &str {
        self.body["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.body["metadata"]["namespace"].as_str()
    }
}
