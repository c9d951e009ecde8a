//! Removes confidential values from objects: pure.

use serde_json::{Value, json};

/// Holds a copy of an object, Secrets included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Words in the name of a variable whose value is left out.
const SECRET_WORDS: [&str; 4] = ["PASSWORD", "TOKEN", "SECRET", "CREDENTIAL"];

/// An object without values of Secrets, and without who manages which field.
pub(super) fn redacted(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
        }
    }
    if object["kind"] == "Secret" {
        for field in ["data", "stringData"] {
            if let Some(values) = object[field].as_object_mut() {
                values.values_mut().for_each(hide);
            }
        }
    }
    hide_variables(&mut object);
    object
}

fn hide(value: &mut Value) {
    let length = value.as_str().map_or(0, str::len);
    *value = json!(format!("<{length} characters left out>"));
}

/// Values of variables that look like secrets, wherever there are containers.
fn hide_variables(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(hide_variables),
        Value::Object(fields) => {
            let secret = fields
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| {
                    let name = name.to_ascii_uppercase();
                    SECRET_WORDS.iter().any(|word| name.contains(word))
                });
            if let (true, Some(value)) = (
                secret,
                fields.get_mut("value").filter(|value| value.is_string()),
            ) {
                hide(value);
            }
            fields.values_mut().for_each(hide_variables);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check S16.
    #[test]
    fn no_secret_is_dumped() {
        let secret = json!({
            "kind": "Secret",
            "metadata": {
                "name": "a",
                "annotations": { LAST_APPLIED: "c2VjcmV0", "kept": "yes" },
                "managedFields": [],
            },
            "data": { "password": "c2VjcmV0" },
            "stringData": { "token": "c2VjcmV0" },
        });
        let pod = json!({
            "kind": "Pod",
            "metadata": {},
            "spec": { "containers": [{ "env": [
                { "name": "AWS_SECRET_ACCESS_KEY", "value": "c2VjcmV0" },
                { "name": "REGION", "value": "here" },
            ] }] },
        });
        for object in [secret, pod] {
            let text = redacted(object).to_string();
            assert!(!text.contains("c2VjcmV0"), "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let object = json!({
            "kind": "Pod",
            "metadata": { "annotations": { "kept": "yes" } },
            "spec": { "containers": [{ "env": [{ "name": "REGION", "value": "here" }] }] },
        });
        assert_eq!(redacted(object.clone()), object);
    }
}
