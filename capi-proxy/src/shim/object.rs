//! One object of a review: its bytes, its name and its metadata. Pure.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Fields of metadata that a conversion may change.
const CONVERTED: [&str; 2] = ["labels", "annotations"];

/// An object and its name.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a> {
    pub(crate) bytes: &'a str,
    pub(crate) name: Name,
    /// Without fields that a conversion may change, and without empty ones.
    pub(crate) metadata: Map<String, Value>,
}

/// The name of an object. Missing fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    namespace: String,
    object: String,
}

/// The object is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub(crate) struct InvalidObject {
    name: Name,
    problem: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields<'a> {
    #[serde(default)]
    api_version: Value,
    #[serde(default)]
    kind: Value,
    #[serde(default, borrow)]
    metadata: Option<&'a RawValue>,
}

// === impl Object ===

impl<'a> Object<'a> {
    pub(crate) fn read(bytes: &'a str) -> Result<Self, InvalidObject> {
        let mut name = Name::default();
        let invalid = |name: &Name, problem| InvalidObject {
            name: name.clone(),
            problem,
        };
        // Derived deserializers also accept an array.
        let is_object = bytes.trim_ascii_start().starts_with('{');
        let fields: Option<Fields> = serde_json::from_str(bytes).ok().filter(|_| is_object);
        let fields = fields.ok_or_else(|| invalid(&name, "not a JSON object"))?;
        name.api_version = text(&fields.api_version);
        name.kind = text(&fields.kind);
        let metadata = fields.metadata.map(RawValue::get);
        let metadata: Option<Map<String, Value>> =
            metadata.and_then(|text| serde_json::from_str(text).ok());
        let mut metadata = metadata.ok_or_else(|| invalid(&name, "metadata is not an object"))?;
        name.namespace = metadata.get("namespace").map(text).unwrap_or_default();
        name.object = metadata.get("name").map(text).unwrap_or_default();
        if name.api_version.is_empty() || name.kind.is_empty() {
            return Err(invalid(&name, "apiVersion or kind is missing"));
        }
        metadata
            .retain(|field, value| !CONVERTED.contains(&field.as_str()) && !is_empty_value(value));
        Ok(Self {
            bytes,
            name,
            metadata,
        })
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether Go may omit or add such a field.
fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

// === impl Name ===

impl Name {
    /// Group of the API version.
    pub(crate) fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// The group of an API version; empty for the core group.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind.is_empty() {
            "object"
        } else {
            &self.kind
        };
        let name = if self.object.is_empty() {
            "without a name"
        } else {
            &self.object
        };
        if self.namespace.is_empty() {
            return write!(f, "{kind} {name}");
        }
        write!(f, "{kind} {}/{name}", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_objects_are_named_by_known_fields() {
        for (text, expected) in [
            (
                r#"{"apiVersion":"a/v1","kind":"K","metadata":{"namespace":"n","name":"o"}}"#,
                Ok("K n/o"),
            ),
            (
                r#"{"apiVersion":"a/v1","kind":"K","metadata":{"name":"o"}}"#,
                Ok("K o"),
            ),
            ("[]", Err("object without a name: not a JSON object")),
            ("1", Err("object without a name: not a JSON object")),
            (
                r#"{"kind":"K","metadata":{"name":"o"}}"#,
                Err("K o: apiVersion or kind is missing"),
            ),
            (
                r#"{"apiVersion":1,"kind":"K","metadata":{"name":"o"}}"#,
                Err("K o: apiVersion or kind is missing"),
            ),
            (
                r#"{"apiVersion":"a/v1","kind":"K"}"#,
                Err("K without a name: metadata is not an object"),
            ),
            (
                r#"{"apiVersion":"a/v1","kind":"K","metadata":"x"}"#,
                Err("K without a name: metadata is not an object"),
            ),
        ] {
            let read = Object::read(text);
            let found = match &read {
                Ok(object) => Ok(object.name.to_string()),
                Err(error) => Err(error.to_string()),
            };
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
