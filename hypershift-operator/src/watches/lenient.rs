//! Objects of which at least the identity is read.
//!
//! Anybody who may write an object may nest it more deeply than the parser goes: in a field whose schema is open, or in
//! managed fields. One such object must not make the list of all objects fail.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// An object as the API server sends it, or only its identity if the rest cannot be read: it exists, and the reconcile
/// that reads it fails and reports why.
#[derive(Debug, Clone)]
pub(crate) struct Lenient<K>(pub(crate) K);

/// What every object has, and is never deep.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    metadata: Metadata,
}

/// Metadata without managed fields.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<Value>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

// === impl Lenient ===

impl<'de, K: DeserializeOwned> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // This finds the end of the object without recursion.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let read = serde_json::from_str(text.get()).or_else(|_| identity(text.get()));
        read.map(Self).map_err(D::Error::custom)
    }
}

fn identity<K: DeserializeOwned>(text: &str) -> Result<K, serde_json::Error> {
    let found: Identity = serde_json::from_str(text)?;
    let (kind, metadata) = (&found.kind, &found.metadata);
    let (namespace, name) = (&metadata.namespace, &metadata.name);
    // The error is not logged: it may quote the object.
    tracing::warn!(kind, namespace, name, "Failed to read more than metadata");
    serde_json::from_value(serde_json::to_value(found)?)
}

impl<K: Resource> Resource for Lenient<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn kind(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn api_version(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::api_version(dynamic)
    }

    fn plural(dynamic: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;
    use kube::api::{DynamicObject, ObjectList};
    use kube::core::PartialObjectMeta;
    use serde_json::json;

    use super::*;

    type Meta = PartialObjectMeta<Secret>;

    /// More levels than the parser reads.
    fn deep() -> Value {
        (0..300).fold(json!("end"), |inner, _| json!({ "f:a": inner }))
    }

    fn list(items: &[Value]) -> String {
        json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items }).to_string()
    }

    /// Check T04.
    #[test]
    fn an_object_that_is_too_deep_hides_no_other() {
        let metadata = |name: &str| json!({ "namespace": "a", "name": name, "uid": name, "annotations": { "k": "v" } });
        let object = |name: &str, spec: Value| json!({ "apiVersion": "v1", "kind": "A", "metadata": metadata(name), "spec": spec });
        let text = list(&[object("deep", deep()), object("flat", json!({ "a": 1 }))]);
        assert!(serde_json::from_str::<ObjectList<DynamicObject>>(&text).is_err());
        let found: ObjectList<Lenient<DynamicObject>> = serde_json::from_str(&text).unwrap();
        let [deep, flat] = &found.items[..] else {
            panic!("{found:?}");
        };
        let identity = serde_json::to_value(&deep.0).unwrap();
        assert_eq!(
            identity,
            json!({ "apiVersion": "v1", "kind": "A", "metadata": metadata("deep") })
        );
        assert_eq!(flat.0.data["spec"], json!({ "a": 1 }));
    }

    /// Check T04.
    #[test]
    fn managed_fields_that_are_too_deep_hide_no_object() {
        let fields = json!([{ "manager": "m", "fieldsType": "FieldsV1", "fieldsV1": deep() }]);
        let deep = json!({ "metadata": { "name": "deep", "managedFields": fields } });
        let flat = json!({ "metadata": { "name": "flat" } });
        let text = list(&[deep, flat]);
        assert!(serde_json::from_str::<ObjectList<Meta>>(&text).is_err());
        let found: ObjectList<Lenient<Meta>> = serde_json::from_str(&text).unwrap();
        let names = found.items.iter().map(|it| it.0.metadata.name.as_deref());
        assert!(names.eq([Some("deep"), Some("flat")]));
    }
}
