//! What a schema would prune: fields of an object that a server would drop silently.

use serde_json::Value;

/// The most fields that are reported of one object.
const MOST: usize = 3;

/// Where an object has fields that the schema of its kind does not know, as JSON pointers; the first few.
pub(super) fn pruned(object: &Value, schema: &Value) -> Vec<String> {
    let mut pruned = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        if is_of_every_object(name) {
            continue;
        }
        field(name, value, schema, "", &mut pruned);
    }
    pruned.truncate(MOST);
    pruned
}

fn is_of_every_object(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn field(name: &str, value: &Value, schema: &Value, at: &str, pruned: &mut Vec<String>) {
    let at = format!("{at}/{name}");
    let own = schema.get("properties").and_then(|all| all.get(name));
    match own.or_else(|| schema.get("additionalProperties")) {
        Some(Value::Bool(true)) => {}
        Some(schema) if schema.is_object() => walk(value, schema, &at, pruned),
        _ => pruned.push(at),
    }
}

fn walk(value: &Value, schema: &Value, at: &str, pruned: &mut Vec<String>) {
    let keeps_all = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let embedded = schema["x-kubernetes-embedded-resource"] == true;
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let known = schema.pointer("/properties").and_then(|all| all.get(name));
                if (keeps_all && known.is_none()) || (embedded && is_of_every_object(name)) {
                    continue;
                }
                field(name, value, schema, at, pruned);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    walk(item, schema, &format!("{at}/{index}"), pruned);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Check M16.
    #[test]
    fn fields_unknown_to_the_schema_are_found() {
        let text = || json!({"type": "string"});
        let schema = json!({"properties": {
            "spec": {"properties": {
                "a": text(),
                "map": {"additionalProperties": text()},
                "list": {"items": {"properties": {"b": text()}}},
                "free": {"x-kubernetes-preserve-unknown-fields": true},
                "any": {"additionalProperties": true},
                "template": {"x-kubernetes-embedded-resource": true, "properties": {"spec": {"properties": {}}}},
            }},
        }});
        for (object, expected) in [
            (
                json!({"apiVersion": "x/v1", "metadata": {"x": 1}, "spec": {"a": "1"}}),
                vec![],
            ),
            (
                json!({"spec": {"map": {"k": "v"}, "list": [{"b": "1"}], "free": {"z": {}}, "any": {"k": {}}}}),
                vec![],
            ),
            (json!({"spec": {"a": "1", "new": 1}}), vec!["/spec/new"]),
            (
                json!({"spec": {"list": [{"b": "1"}, {"c": 1}]}}),
                vec!["/spec/list/1/c"],
            ),
            (
                json!({"spec": {"template": {"kind": "X", "metadata": {}, "spec": {"x": 1}}}}),
                vec!["/spec/template/spec/x"],
            ),
            (json!({"status": {"ready": true}}), vec!["/status"]),
        ] {
            assert_eq!(pruned(&object, &schema), expected, "{object}");
        }
    }
}
