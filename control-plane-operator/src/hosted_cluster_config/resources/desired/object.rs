//! A desired object: its fields, and who owns them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Map, Value, json};

use super::error::Error;

/// Label of all objects that this operator has written in the hosted cluster.
pub const MANAGED: &str = "hypershift.openshift.io/managed";
/// Annotation with the team that owns a certificate.
const OWNING_COMPONENT: &str = "openshift.io/owning-component";

/// Who owns the fields of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Each top-level field of the desired object is replaced as a whole; labels and annotations are merged.
    Enforce,
    /// The desired fields are set. Other fields belong to others.
    Merge,
    /// The object is created. After that it belongs to others, except for the label.
    Create,
    /// The object is deleted.
    Delete,
}

/// Identity of an object in the hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace. Empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A desired object.
#[derive(Debug, Clone)]
pub struct Object {
    /// Who owns its fields.
    pub mode: Mode,
    /// The object. Null means that a field must not exist.
    pub value: Value,
    /// Fields that are only set when the object is created.
    pub initial: Value,
    /// Whether the object has the label of all managed objects.
    pub is_labelled: bool,
    /// Objects with the same chain are written until the first failure.
    pub chain: Option<&'static str>,
    /// Whether the object is skipped while its namespace does not exist.
    pub is_optional: bool,
}

/// What a step builds.
#[derive(Debug, Default)]
pub struct Desired {
    /// The objects, in the order in which they are written.
    pub objects: Vec<Object>,
    /// Objects that cannot be built.
    pub errors: Vec<Error>,
}

// === impl Key ===

impl Key {
    /// The identity of an object in JSON.
    pub fn of(value: &Value) -> Self {
        let text = |pointer: &str| {
            let found = value.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// An identity. The namespace of a cluster-scoped object is empty.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The API resource of its kind.
    pub fn resource(&self) -> ApiResource {
        let (group, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version));
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &self.kind))
    }

    /// Whether its status is a subresource.
    pub fn has_status_subresource(&self) -> bool {
        // The configuration of the network is written with its status in one request. Its operator's kind is another one.
        (self.api_version.as_str(), self.kind.as_str()) != ("config.openshift.io/v1", "Network")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return write!(f, "{} {}", self.kind, self.name);
        }
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

// === impl Desired ===

impl Desired {
    pub(super) fn add(&mut self, object: Object) {
        self.objects.push(object);
    }

    pub(super) fn extend(&mut self, objects: impl IntoIterator<Item = Object>) {
        self.objects.extend(objects);
    }

    /// Adds an object, or records why it cannot be built.
    pub(super) fn attempt(&mut self, built: Result<Object, Error>) {
        match built {
            Ok(object) => self.objects.push(object),
            Err(error) => self.errors.push(error),
        }
    }
}

// === impl Object ===

impl Object {
    fn new(mode: Mode, value: Value) -> Self {
        Self {
            mode,
            value,
            initial: Value::Null,
            is_labelled: mode != Mode::Delete,
            chain: None,
            is_optional: false,
        }
    }

    /// Replaces each top-level field of the live object.
    pub fn enforce(value: Value) -> Self {
        Self::new(Mode::Enforce, value)
    }

    /// Sets these fields of the live object.
    pub fn merge(value: Value) -> Self {
        Self::new(Mode::Merge, value)
    }

    pub(super) fn create(value: Value) -> Self {
        Self::new(Mode::Create, value)
    }

    pub(super) fn delete(key: &Key) -> Self {
        Self::new(Mode::Delete, bare(key))
    }

    /// Fields for the creation only.
    pub(super) fn initially(mut self, initial: Value) -> Self {
        self.initial = initial;
        self
    }

    /// Skips the object while its namespace, which comes with the release, does not exist.
    pub(super) fn with_foreign_namespace(mut self) -> Self {
        self.is_optional = true;
        self
    }

    pub(super) fn chained(mut self, chain: &'static str) -> Self {
        self.chain = Some(chain);
        self
    }

    /// Names the component that owns a certificate, at creation.
    pub(super) fn owned_by_component(self, component: &str) -> Self {
        self.initially(json!({ "metadata": { "annotations": { OWNING_COMPONENT: component } } }))
    }

    /// Its identity.
    pub fn key(&self) -> Key {
        Key::of(&self.value)
    }
}

/// An object without fields.
pub(super) fn bare(key: &Key) -> Value {
    let mut value = json!({
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": { "name": key.name },
    });
    if !key.namespace.is_empty() {
        value["metadata"]["namespace"] = json!(key.namespace);
    }
    value
}

/// An object with a `spec`. The namespace of a cluster-scoped object is empty.
pub(super) fn with_spec(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
    spec: Value,
) -> Value {
    let mut value = bare(&Key::new(api_version, kind, namespace, name));
    value["spec"] = spec;
    value
}

/// A ConfigMap.
pub(super) fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    let mut value = bare(&Key::new("v1", "ConfigMap", namespace, name));
    value["data"] = data;
    value
}

/// A Secret with text values.
pub(super) fn secret(namespace: &str, name: &str, data: &[(&str, &[u8])]) -> Value {
    let data = data
        .iter()
        .map(|(key, bytes)| ((*key).to_owned(), json!(STANDARD.encode(bytes))));
    let mut value = bare(&Key::new("v1", "Secret", namespace, name));
    value["data"] = Value::Object(data.collect());
    value
}

/// A namespace with labels.
pub(super) fn namespace(name: &str, labels: &[(&str, &str)]) -> Value {
    let mut value = bare(&Key::new("v1", "Namespace", "", name));
    if !labels.is_empty() {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)));
        value["metadata"]["labels"] = Value::Object(labels.collect());
    }
    value
}

/// A service account.
pub(super) fn service_account(namespace: &str, name: &str) -> Value {
    bare(&Key::new("v1", "ServiceAccount", namespace, name))
}

/// Names the objects of a list by their keys.
pub(super) fn by_key(values: impl IntoIterator<Item = Value>) -> BTreeMap<Key, Value> {
    values
        .into_iter()
        .map(|value| (Key::of(&value), value))
        .collect()
}

/// The documents of a manifest that is part of the program.
pub(super) fn manifest(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(serde_saphyr::from_str);
    documents
        .collect::<Result<_, _>>()
        .expect("invariant: tests parse all manifests")
}

/// Fields of a map, empty if it is none.
pub(super) fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
