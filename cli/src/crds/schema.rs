//! Walks over schemas as they stand in a CRD.

use serde_json::{Map, Value};

/// Keywords whose value is a map from names to schemas.
const MAPS_OF_SCHEMAS: [&str; 4] = [
    "properties",
    "patternProperties",
    "definitions",
    "dependencies",
];
/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 7] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// Removes every description from a schema; a *property* that is called `description` stays.
pub(super) fn strip_descriptions(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(strip_descriptions),
        Value::Object(fields) => strip_fields(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strip_fields(fields: &mut Map<String, Value>) {
    fields.shift_remove("description");
    for (keyword, value) in fields {
        if SCHEMAS.contains(&keyword.as_str()) {
            strip_descriptions(value);
        } else if MAPS_OF_SCHEMAS.contains(&keyword.as_str())
            && let Some(schemas) = value.as_object_mut()
        {
            schemas.values_mut().for_each(strip_descriptions);
        }
    }
}

/// Whether two schemas accept and keep the same objects, by plain comparison.
pub(super) fn interchangeable(a: &Value, b: &Value) -> bool {
    let [mut a, mut b] = [a.clone(), b.clone()];
    strip_descriptions(&mut a);
    strip_descriptions(&mut b);
    a == b
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strips_descriptions_and_keeps_properties_of_that_name() {
        let mut schema = json!({
            "description": "gone",
            "type": "object",
            "properties": {
                "description": {"description": "gone", "type": "string"},
                "list": {"items": {"description": "gone", "enum": ["description"]}},
                "map": {"additionalProperties": {"description": "gone", "type": "string"}},
                "either": {"anyOf": [{"description": "gone", "type": "integer"}]},
                "fixed": {"default": {"description": "kept"}},
            },
            "x-kubernetes-validations": [{"rule": "has(self.description)", "message": "kept"}],
        });
        strip_descriptions(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "description": {"type": "string"},
                    "list": {"items": {"enum": ["description"]}},
                    "map": {"additionalProperties": {"type": "string"}},
                    "either": {"anyOf": [{"type": "integer"}]},
                    "fixed": {"default": {"description": "kept"}},
                },
                "x-kubernetes-validations": [{"rule": "has(self.description)", "message": "kept"}],
            })
        );
    }

    #[test]
    fn schemas_that_differ_in_words_only_are_interchangeable() {
        let a = json!({"openAPIV3Schema": {"description": "one"}});
        let b = json!({"openAPIV3Schema": {"description": "two"}});
        // The wrapper is not a schema itself, so callers pass what is inside.
        assert!(interchangeable(
            &a["openAPIV3Schema"],
            &b["openAPIV3Schema"]
        ));
        assert!(!interchangeable(
            &json!({"type": "string"}),
            &json!({"type": "integer"})
        ));
    }
}
