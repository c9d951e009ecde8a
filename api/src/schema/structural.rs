//! From the schema that is derived from Rust types to one that an API server accepts.
//!
//! `Option` means that a field may be absent, not that it may be null, and an enum is one list of values.

use serde_json::{Map, Value, json};

use super::{PREVIEW, RULES};
use crate::features::FeatureSet;

/// The structural form of a schema and of all schemas within it, with what the feature set has of them.
pub(super) fn structural(mut schema: Value, features: FeatureSet) -> Value {
    restructure(&mut schema, features);
    if let Value::Object(root) = &mut schema {
        root.remove("title");
    }
    schema
}

fn restructure(schema: &mut Value, features: FeatureSet) {
    let Value::Object(schema) = schema else {
        return;
    };
    drop_null(schema);
    select(schema, features);
    join_values(schema);
    bound_width(schema);
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = unwrapped(description);
    }
    for part in ["items", "additionalProperties"] {
        if let Some(part) = schema.get_mut(part) {
            restructure(part, features);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let properties = properties.values_mut();
        properties.for_each(|property| restructure(property, features));
    }
}

/// Takes back what an `Option` added: null as a type, as a value, as an alternative.
fn drop_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let other = types.iter().find(|name| **name != "null").cloned();
        schema.insert("type".to_owned(), other.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(alternatives)) = schema.get("anyOf") else {
        return;
    };
    if let [Value::Object(inner), null] = alternatives.as_slice()
        && null["type"] == "null"
    {
        let inner = inner.clone();
        schema.remove("anyOf");
        hoist(schema, inner);
    }
}

/// Removes properties, values and rules that the feature set does not have, and the mark of those that it has.
fn select(schema: &mut Map<String, Value>, features: FeatureSet) {
    let has_preview = features.includes(FeatureSet::TechPreviewNoUpgrade);
    let is_in = |part: &Value| has_preview || part.get(PREVIEW).is_none();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|_, property| is_in(property));
    }
    for list in ["oneOf", RULES] {
        if let Some(Value::Array(parts)) = schema.get_mut(list) {
            parts.retain(is_in);
            for part in parts.iter_mut().filter_map(Value::as_object_mut) {
                part.remove(PREVIEW);
            }
        }
    }
    if schema.get(RULES).is_some_and(|rules| *rules == json!([])) {
        schema.remove(RULES);
    }
    schema.remove(PREVIEW);
}

/// Attributes of the field take precedence over those of its type; the rules of both apply.
fn hoist(outer: &mut Map<String, Value>, inner: Map<String, Value>) {
    for (key, value) in inner {
        match (outer.get_mut(&key), value) {
            (Some(Value::Array(rules)), Value::Array(mut own)) if key == RULES => {
                own.append(rules);
                *rules = own;
            }
            (Some(_), _) => {}
            (None, value) => {
                outer.insert(key, value);
            }
        }
    }
}

/// States the range of an `int32`: an API server does not derive it from the format, and a number beyond it would be
/// stored although no typed client can read it.
fn bound_width(schema: &mut Map<String, Value>) {
    if schema.get("format").is_none_or(|format| format != "int32") {
        return;
    }
    schema.entry("minimum").or_insert_with(|| json!(i32::MIN));
    schema.entry("maximum").or_insert_with(|| json!(i32::MAX));
}

/// Turns an enum with documented variants into one list of values, and keeps the documentation.
fn join_values(schema: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = schema.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut documentation = Vec::new();
    for variant in variants {
        let of_variant = match (&variant["const"], &variant["enum"]) {
            (Value::Null, Value::Array(several)) => several.clone(),
            (Value::Null, _) => return,
            (one, _) => vec![one.clone()],
        };
        if let (Some(text), [Value::String(name)]) =
            (variant["description"].as_str(), of_variant.as_slice())
        {
            let name = if name.is_empty() { "(empty)" } else { name };
            documentation.push(format!("{name}: {}", unwrapped(text)));
        }
        values.extend(of_variant);
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(values));
    if !documentation.is_empty() {
        let before = schema.get("description").and_then(Value::as_str);
        let paragraphs = before.map(str::to_owned).into_iter().chain(documentation);
        let text = paragraphs.collect::<Vec<_>>().join("\n\n");
        schema.insert("description".to_owned(), json!(text));
    }
}

/// Paragraphs become one line each; who shows them wraps them.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let lines: Vec<_> = paragraph.lines().map(str::trim).collect();
        lines.join(" ")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_schemas_become_structural_schemas() {
        for (name, derived, expected) in [
            (
                "an optional text may be absent, not null",
                json!({"type": ["string", "null"], "enum": ["a", null]}),
                json!({"type": "string", "enum": ["a"]}),
            ),
            (
                "the words of a field go before those of its type, and the rules of both hold",
                json!({
                    "description": "the field",
                    "anyOf": [
                        {"type": "object", "description": "the type", RULES: [{"rule": "a"}]},
                        {"type": "null"},
                    ],
                    RULES: [{"rule": "b"}],
                }),
                json!({
                    "description": "the field",
                    "type": "object",
                    RULES: [{"rule": "a"}, {"rule": "b"}],
                }),
            ),
            (
                "variants with words are one list of values",
                json!({
                    "description": "which",
                    "oneOf": [
                        {"type": "string", "const": "A", "description": "the\nfirst"},
                        {"type": "string", "const": "", "description": "none"},
                    ],
                }),
                json!({
                    "description": "which\n\nA: the first\n\n(empty): none",
                    "type": "string",
                    "enum": ["A", ""],
                }),
            ),
            (
                "the range of an int32 is stated, and a narrower bound stays",
                json!({"type": ["integer", "null"], "format": "int32", "minimum": 1}),
                json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": i32::MAX}),
            ),
            (
                "an int64 has no range of its own",
                json!({"type": "integer", "format": "int64"}),
                json!({"type": "integer", "format": "int64"}),
            ),
            (
                "a choice between types stays one",
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            (
                "everything within is treated alike",
                json!({"title": "T", "items": {"properties": {"a": {"type": ["integer", "null"]}}}}),
                json!({"items": {"properties": {"a": {"type": "integer"}}}}),
            ),
        ] {
            let structural = structural(derived, FeatureSet::Default);
            assert_eq!(structural, expected, "{name}");
        }
    }

    #[test]
    fn feature_sets_select_properties_values_and_rules() {
        let derived = json!({
            "properties": {
                "a": {"type": "string"},
                "b": {"anyOf": [{"type": "object", "description": "b"}, {"type": "null"}], PREVIEW: true},
                "c": {"oneOf": [
                    {"type": "string", "const": "A", "description": "the first"},
                    {"type": "string", "const": "B", "description": "the second", PREVIEW: true},
                ]},
                "d": {"items": {"properties": {"e": {"type": "string", PREVIEW: true}}}},
            },
            RULES: [{"rule": "has(self.b)", PREVIEW: true}],
        });
        let default = json!({"properties": {
            "a": {"type": "string"},
            "c": {"type": "string", "enum": ["A"], "description": "A: the first"},
            "d": {"items": {"properties": {}}},
        }});
        let preview = json!({
            "properties": {
                "a": {"type": "string"},
                "b": {"type": "object", "description": "b"},
                "c": {
                    "type": "string",
                    "enum": ["A", "B"],
                    "description": "A: the first\n\nB: the second",
                },
                "d": {"items": {"properties": {"e": {"type": "string"}}}},
            },
            RULES: [{"rule": "has(self.b)"}],
        });
        let of = |features| structural(derived.clone(), features);
        assert_eq!(of(FeatureSet::Default), default);
        assert_eq!(of(FeatureSet::TechPreviewNoUpgrade), preview);
    }
}
