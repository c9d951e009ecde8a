//! Which fields of a stored object a new schema would drop. Pure.

use serde_json::{Map, Value};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
/// What every object has, whatever the schema says.
const IMPLICIT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The paths of fields that `schema` does not know and does not keep.
pub(crate) fn dropped(object: &Value, schema: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    if let Value::Object(fields) = object {
        for (name, value) in fields {
            if !IMPLICIT.contains(&name.as_str()) {
                field(name, value, schema, name, &mut paths);
            }
        }
    }
    paths
}

fn field(name: &str, value: &Value, schema: &Value, path: &str, paths: &mut Vec<String>) {
    if let Some(known) = schema["properties"].get(name) {
        walk(value, known, path, paths);
        return;
    }
    match &schema["additionalProperties"] {
        Value::Object(_) => walk(value, &schema["additionalProperties"], path, paths),
        Value::Bool(true) => {}
        _ if schema[PRESERVE] == true => {}
        _ => paths.push(path.to_owned()),
    }
}

fn walk(value: &Value, schema: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(fields) => walk_object(fields, schema, path, paths),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &schema["items"], &format!("{path}[{index}]"), paths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn walk_object(fields: &Map<String, Value>, schema: &Value, path: &str, paths: &mut Vec<String>) {
    let embedded = schema[EMBEDDED] == true;
    for (name, value) in fields {
        if embedded && IMPLICIT.contains(&name.as_str()) {
            continue;
        }
        field(name, value, schema, &format!("{path}.{name}"), paths);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_dropped_unless_the_schema_knows_or_keeps_them() {
        let schema = json!({"properties": {"spec": {"properties": {
            "known": {"type": "string"},
            "list": {"items": {"properties": {"a": {}}}},
            "map": {"additionalProperties": {"properties": {"b": {}}}},
            "anything": {"additionalProperties": true},
            "kept": {PRESERVE: true, "properties": {"inner": {"properties": {}}}},
            "object": {EMBEDDED: true, "properties": {"spec": {PRESERVE: true}}},
        }}}});
        let table = [
            (json!({"known": "x"}), vec![]),
            (json!({"unknown": "x"}), vec!["spec.unknown"]),
            (
                json!({"list": [{"a": 1}, {"b": 1}]}),
                vec!["spec.list[1].b"],
            ),
            (
                json!({"map": {"k": {"b": 1, "c": 1}}}),
                vec!["spec.map.k.c"],
            ),
            (json!({"anything": {"k": {"c": 1}}}), vec![]),
            (json!({"kept": {"new": 1}}), vec![]),
            (
                json!({"kept": {"inner": {"new": 1}}}),
                vec!["spec.kept.inner.new"],
            ),
            (
                json!({"object": {"kind": "A", "metadata": {"name": "a"}, "spec": {"z": 1}, "data": {}}}),
                vec!["spec.object.data"],
            ),
        ];
        for (spec, expected) in table {
            let object =
                json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
            assert_eq!(dropped(&object, &schema), expected, "{object}");
        }
        let status = json!({"status": {"a": 1}});
        assert_eq!(dropped(&status, &schema), ["status"]);
    }
}
