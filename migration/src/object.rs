//! Objects as an API server gives them, and the kinds that they are of.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// A kind as an API server serves it, at the one version at which a migration reads and writes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version: the group's preferred one, which is the stored one of all kinds of Cluster API.
    pub version: String,
    /// The name in URLs, for instance `machines`.
    pub plural: String,
    /// The kind, for instance `Machine`.
    pub kind: String,
    /// Whether objects of it live in namespaces.
    pub namespaced: bool,
    /// Whether it has a status subresource at [`Resource::version`].
    pub has_status: bool,
    /// All versions that are served: entries of `managedFields` at others cannot be written.
    pub served: Vec<String>,
}

/// Which object: never two of one key in a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty for objects of the whole cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// One object, as read. Cheap to clone.
///
/// Field owners are most of what an object is in memory, as trees of maps with a key each, and are hardly ever looked
/// at: they are kept as the text that they came as.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    key: ObjectKey,
    body: Arc<Value>,
    managed_fields: Option<Arc<str>>,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `name`.
    pub name: String,
    /// `uid`.
    pub uid: String,
    /// Whether it says `controller: true`.
    pub controller: bool,
    /// `blockOwnerDeletion`, where given.
    pub blocks_deletion: Option<bool>,
}

/// A response of the API server that is no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an object of kind {kind} has no {field}: the response is not from an API server")]
pub struct Malformed {
    /// The kind that was requested.
    pub kind: String,
    /// The field that lacks.
    pub field: &'static str,
}

// === impl Resource ===

impl Resource {
    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// As in error messages of `kubectl`: `machines.cluster.example.com`.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

// === impl ObjectKey ===

impl ObjectKey {
    /// The same kind and name in another group.
    #[must_use]
    pub fn in_group(&self, group: &str) -> Self {
        Self {
            group: group.to_owned(),
            ..self.clone()
        }
    }
}

/// `Kind.group namespace/name`, as in `kubectl`.
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

// === impl Object ===

impl Object {
    /// An object of `resource`. Items of lists have no `apiVersion` and `kind`, which are added.
    pub fn new(resource: &Resource, mut body: Value) -> Result<Self, Malformed> {
        let malformed = |field| Malformed {
            kind: resource.kind.clone(),
            field,
        };
        let fields = body.as_object_mut().ok_or_else(|| malformed("fields"))?;
        fields.insert("apiVersion".to_owned(), resource.api_version().into());
        fields.insert("kind".to_owned(), resource.kind.clone().into());
        let name = text(&body, "/metadata/name").ok_or_else(|| malformed("metadata.name"))?;
        let key = ObjectKey {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: text(&body, "/metadata/namespace")
                .unwrap_or_default()
                .to_owned(),
            name: name.to_owned(),
        };
        if text(&body, "/metadata/uid").is_none() {
            return Err(malformed("metadata.uid"));
        }
        let metadata = body.pointer_mut("/metadata").and_then(Value::as_object_mut);
        let managed_fields = metadata.and_then(|metadata| metadata.remove("managedFields"));
        Ok(Self {
            key,
            body: Arc::new(body),
            managed_fields: managed_fields.map(|entries| entries.to_string().into()),
        })
    }

    /// Which object it is.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// All of it but [`Object::managed_fields`].
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// All of it, as it was given.
    pub fn whole(&self) -> Value {
        let mut body = Value::clone(&self.body);
        if let Some(text) = &self.managed_fields {
            body["metadata"]["managedFields"] = parsed(text);
        }
        body
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        text(&self.body, "/metadata/uid").unwrap_or_default()
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        text(&self.body, "/metadata/resourceVersion").unwrap_or_default()
    }

    /// `metadata.creationTimestamp`; RFC 3339 in UTC with seconds, so that it sorts as text.
    pub fn created(&self) -> &str {
        text(&self.body, "/metadata/creationTimestamp").unwrap_or_default()
    }

    /// Whether its deletion was requested.
    pub fn is_being_deleted(&self) -> bool {
        text(&self.body, "/metadata/deletionTimestamp").is_some()
    }

    /// `metadata.generation`; zero for kinds that have none.
    pub fn generation(&self) -> i64 {
        let generation = self.body.pointer("/metadata/generation");
        generation.and_then(Value::as_i64).unwrap_or_default()
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.body.pointer("/metadata/finalizers");
        let finalizers = finalizers.and_then(Value::as_array).into_iter().flatten();
        finalizers.filter_map(Value::as_str).collect()
    }

    /// One of its annotations.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        let annotations = self.body.pointer("/metadata/annotations")?;
        annotations.get(name)?.as_str()
    }

    /// One of its labels.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.body.pointer("/metadata/labels")?.get(name)?.as_str()
    }

    /// A string field, by JSON pointer.
    pub fn text(&self, pointer: &str) -> Option<&str> {
        text(&self.body, pointer)
    }

    /// `metadata.ownerReferences`.
    pub fn owners(&self) -> Vec<Owner> {
        let owners = self.body.pointer("/metadata/ownerReferences");
        let owners = owners.and_then(Value::as_array).into_iter().flatten();
        owners.map(Owner::read).collect()
    }

    /// `metadata.managedFields`.
    pub fn managed_fields(&self) -> Vec<Value> {
        match self.managed_fields.as_deref().map(parsed) {
            Some(Value::Array(entries)) => entries,
            Some(_) | None => Vec::new(),
        }
    }
}

// === impl Owner ===

impl Owner {
    fn read(entry: &Value) -> Self {
        let text = |field: &str| {
            let value = entry.get(field).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let flag = |field: &str| entry.get(field).and_then(Value::as_bool);
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            controller: flag("controller").unwrap_or_default(),
            blocks_deletion: flag("blockOwnerDeletion"),
        }
    }

    /// The group of `apiVersion`; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// The owner, for a dependent in `namespace`. An owner of the whole cluster has no namespace.
    pub fn key(&self, namespace: &str) -> ObjectKey {
        ObjectKey {
            group: self.group().to_owned(),
            kind: self.kind.clone(),
            namespace: namespace.to_owned(),
            name: self.name.clone(),
        }
    }

    /// As it is written.
    pub fn to_value(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("apiVersion".to_owned(), self.api_version.clone().into());
        if let Some(blocks) = self.blocks_deletion {
            entry.insert("blockOwnerDeletion".to_owned(), blocks.into());
        }
        if self.controller {
            entry.insert("controller".to_owned(), true.into());
        }
        entry.insert("kind".to_owned(), self.kind.clone().into());
        entry.insert("name".to_owned(), self.name.clone().into());
        entry.insert("uid".to_owned(), self.uid.clone().into());
        Value::Object(entry)
    }
}

/// What was written here is readable here.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
