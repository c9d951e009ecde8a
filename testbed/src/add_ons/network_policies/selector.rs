//! Label selectors of Kubernetes.

use serde_json::{Map, Value};

/// Whether an object's labels fit a selector. An empty selector fits everything.
pub(super) fn fits(selector: &Value, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    exact
        .into_iter()
        .flat_map(Map::iter)
        .all(|(name, value)| labels[name.as_str()] == *value)
        && expressions
            .into_iter()
            .flatten()
            .all(|one| holds(one, labels))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let found = &labels[expression["key"].as_str().unwrap_or_default()];
    let listed = expression["values"]
        .as_array()
        .is_some_and(|values| values.contains(found));
    match expression["operator"].as_str().unwrap_or_default() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => !found.is_null(),
        "DoesNotExist" => found.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_operator_is_understood() {
        let object = json!({ "metadata": { "labels": { "app": "a", "tier": "x" } } });
        let expression = |key: &str, operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
        for (selector, expected) in [
            (json!({}), true),
            (json!({ "matchLabels": { "app": "a" } }), true),
            (json!({ "matchLabels": { "app": "b" } }), false),
            (expression("app", "In", &["a", "b"]), true),
            (expression("app", "NotIn", &["a"]), false),
            (expression("none", "NotIn", &["a"]), true),
            (expression("tier", "Exists", &[]), true),
            (expression("tier", "DoesNotExist", &[]), false),
        ] {
            assert_eq!(fits(&selector, &object), expected, "{selector}");
        }
    }
}
