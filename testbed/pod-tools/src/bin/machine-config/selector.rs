//! Label selectors of pools and of the configurations that select pools.

use serde_json::{Map, Value};

use crate::Result;
use crate::manifests::{Manifest, text};

/// Whether a selector, at a field of `owner`'s spec, selects labels. One that is empty or missing selects nothing: so do
/// those of the real controller.
pub(crate) fn selects(owner: &Manifest, field: &str, labels: &Value) -> Result<bool> {
    let selector = &owner.spec()[field];
    let exact = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    let count = exact.map_or(0, Map::len) + expressions.map_or(0, Vec::len);
    if count == 0 {
        return Ok(false);
    }
    let mut is_selected = exact
        .into_iter()
        .flatten()
        .all(|(label, value)| labels.get(label) == Some(value));
    for expression in expressions.into_iter().flatten() {
        let value = labels.get(text(expression, "/key"));
        let listed = expression["values"].as_array();
        let is_listed = value.is_some_and(|value| listed.is_some_and(|it| it.contains(value)));
        is_selected &= match text(expression, "/operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            other => {
                let field = format!("spec.{field}.matchExpressions");
                let problem =
                    format!("unknown operator {other:?}: use In, NotIn, Exists or DoesNotExist");
                return Err(owner.invalid(&field, problem));
            }
        };
    }
    Ok(is_selected)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_selected() {
        let labels = json!({ "role": "worker", "built-in": "" });
        let expression = |operator: &str, values: &[&str]| json!({ "matchExpressions": [{ "key": "role", "operator": operator, "values": values }] });
        for (selector, expected) in [
            (json!({ "matchLabels": { "role": "worker" } }), true),
            (json!({ "matchLabels": { "built-in": "" } }), true),
            (
                json!({ "matchLabels": { "role": "worker", "other": "" } }),
                false,
            ),
            (expression("In", &["worker", "infra"]), true),
            (expression("NotIn", &["worker"]), false),
            (expression("Exists", &[]), true),
            (expression("DoesNotExist", &[]), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            let owner = Manifest::of(json!({ "kind": "Pool", "spec": { "for": selector } }));
            assert_eq!(selects(&owner, "for", &labels), Ok(expected), "{selector}");
        }
        let owner = json!({ "kind": "Pool", "metadata": { "name": "a" }, "spec": { "for": expression("Gt", &[]) } });
        let error = selects(&Manifest::of(owner), "for", &labels).unwrap_err();
        assert!(
            error.starts_with("Pool a: spec.for.matchExpressions: unknown operator \"Gt\""),
            "{error}"
        );
    }
}
