//! One object of an installation, and the marks by which it is found again.

use std::fmt;

use serde_json::{Map, Value, json};

use super::kind::{Kind, Resource, Scope, text};

/// The field manager of every write.
pub(crate) const FIELD_MANAGER: &str = "hypershift-install";
/// The label that says who made an object, and its value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const OURS: &str = "hypershift-install";
/// The label that says which installation an object belongs to: the namespace of the operator.
pub(crate) const INSTALLATION: &str = "hypershift.openshift.io/installation";

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

/// An object as it is to be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub(crate) id: Id,
    /// With `apiVersion`, `kind` and `metadata`.
    pub(crate) body: Value,
}

// === impl Id ===

impl Id {
    /// The object's path at the API server.
    pub(crate) fn path(&self) -> String {
        let collection = self.resource().path(self.namespace.as_deref());
        format!("{collection}/{}", self.name)
    }

    fn resource(&self) -> Resource {
        self.kind.resource()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.name(), self.name),
            None => write!(f, "{} {}", self.kind.name(), self.name),
        }
    }
}

// === impl Object ===

impl Object {
    /// An object of `fields`, to which the rest is added. A kind without namespaces ignores `namespace`.
    pub(crate) fn new(kind: Kind, namespace: &str, name: &str, fields: Value) -> Self {
        let resource = kind.resource();
        let namespace = match resource.scope {
            Scope::Cluster => None,
            Scope::Namespace => Some(namespace.to_owned()),
        };
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = &namespace {
            metadata["namespace"] = json!(namespace);
        }
        let mut body = json!({
            "apiVersion": resource.api_version(),
            "kind": kind.name(),
            "metadata": metadata,
        });
        if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
            body.extend(fields);
        }
        Self {
            id: Id {
                kind,
                namespace,
                name: name.to_owned(),
            },
            body,
        }
    }

    /// A complete CRD.
    pub(crate) fn crd(body: Value) -> Self {
        Self::live(Kind::Crd, body)
    }

    /// An object as the API server has it.
    pub(crate) fn live(kind: Kind, body: Value) -> Self {
        let namespace = body["metadata"]["namespace"].as_str().map(str::to_owned);
        Self {
            id: Id {
                kind,
                namespace,
                name: text(&body, "/metadata/name").to_owned(),
            },
            body,
        }
    }

    /// Adds a label.
    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        labels(&mut self.body).insert(key.to_owned(), json!(value));
        self
    }

    /// Adds the marks of an installation.
    pub(crate) fn mark(self, installation: &str) -> Self {
        self.label("app.kubernetes.io/part-of", "hypershift")
            .label(MANAGED_BY, OURS)
            .label(INSTALLATION, installation)
    }
}

/// The labels of an object, which are made if it has none.
fn labels(body: &mut Value) -> &mut Map<String, Value> {
    let labels = &mut body["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels
        .as_object_mut()
        .expect("invariant: it was just made an object")
}

/// A label of a live object.
pub(crate) fn label_of<'v>(body: &'v Value, key: &str) -> Option<&'v str> {
    body["metadata"]["labels"][key].as_str()
}

/// Whether an installation made a live object: its label says so, and so does the record of who wrote its fields.
pub(crate) fn is_ours(body: &Value) -> bool {
    label_of(body, MANAGED_BY) == Some(OURS) && managers(body).any(|name| name == FIELD_MANAGER)
}

/// Who wrote fields of the object itself, status and other subresources aside.
pub(crate) fn managers(body: &Value) -> impl Iterator<Item = &str> {
    let entries = body["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .filter(|entry| text(entry, "/subresource").is_empty())
        .filter_map(|entry| entry["manager"].as_str())
}

/// The query for what an installation made.
pub(crate) fn selector(installation: &str) -> String {
    format!("&labelSelector={MANAGED_BY}%3D{OURS},{INSTALLATION}%3D{installation}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_ours_by_label_and_by_field_manager() {
        let object = |label: &str, manager: &str, subresource: &str| {
            json!({"metadata": {
                "labels": {MANAGED_BY: label},
                "managedFields": [{"manager": manager, "subresource": subresource}],
            }})
        };
        let table = [
            (object(OURS, FIELD_MANAGER, ""), true),
            (object(OURS, "kubectl", ""), false),
            (object("Helm", FIELD_MANAGER, ""), false),
            (object(OURS, FIELD_MANAGER, "status"), false),
            (json!({}), false),
        ];
        for (body, expected) in table {
            assert_eq!(is_ours(&body), expected, "{body}");
        }
    }

    #[test]
    fn ids_name_kind_namespace_and_name() {
        let object = Object::new(Kind::Service, "hypershift", "operator", json!({}));
        assert_eq!(object.id.to_string(), "Service hypershift/operator");
        let object = Object::new(Kind::ClusterRole, "hypershift", "a", json!({}));
        assert_eq!(object.id.to_string(), "ClusterRole a");
        assert_eq!(object.body["metadata"], json!({"name": "a"}));
    }
}
