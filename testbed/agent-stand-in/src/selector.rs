//! Label selectors: which labels an Agent must have for a machine. Pure.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A label selector, as Kubernetes defines it.
#[derive(Debug, Default)]
pub(crate) struct Selector {
    requirements: Vec<Requirement>,
}

/// A requirement for one label.
#[derive(Debug)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

// === impl Selector ===

impl Selector {
    /// Parses the field of an `AgentMachine`. Without a selector, labels do not matter.
    pub(crate) fn parse(selector: &Value) -> Result<Self> {
        if selector.is_null() {
            return Ok(Self::default());
        }
        let fields = selector.as_object().context("the selector is no object")?;
        let mut requirements = Vec::new();
        for (field, value) in fields {
            match field.as_str() {
                "matchLabels" => {
                    let labels = value.as_object().context("matchLabels is no object")?;
                    for (key, value) in labels {
                        let value = text(value).with_context(|| format!("label {key}"))?;
                        requirements.push(Requirement {
                            key: key.clone(),
                            operator: Operator::In(vec![value]),
                        });
                    }
                }
                "matchExpressions" => {
                    let all = value.as_array().context("matchExpressions is no list")?;
                    for expression in all {
                        let parsed = Requirement::parse(expression);
                        requirements.push(parsed.with_context(|| expression.to_string())?);
                    }
                }
                other => bail!("the selector has a field {other}, which no selector has"),
            }
        }
        Ok(Self { requirements })
    }

    /// Whether labels meet all requirements.
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        self.requirements.iter().all(|it| it.is_met(labels))
    }
}

// === impl Requirement ===

impl Requirement {
    fn parse(expression: &Value) -> Result<Self> {
        let key = text(&expression["key"]).context("it has no key")?;
        let values = match &expression["values"] {
            Value::Null => Vec::new(),
            values => {
                let values = values.as_array().context("its values are no list")?;
                values.iter().map(text).collect::<Result<Vec<_>>>()?
            }
        };
        let is_empty = values.is_empty();
        let (operator, takes_values) = match expression["operator"].as_str() {
            Some("In") => (Operator::In(values), true),
            Some("NotIn") => (Operator::NotIn(values), true),
            Some("Exists") => (Operator::Exists, false),
            Some("DoesNotExist") => (Operator::DoesNotExist, false),
            _ => bail!("its operator is unknown"),
        };
        ensure!(takes_values != is_empty, "its operator and values disagree");
        Ok(Self { key, operator })
    }

    fn is_met(&self, labels: &Value) -> bool {
        let value = labels[&self.key].as_str();
        let is_one_of =
            |values: &[String]| value.is_some_and(|it| values.iter().any(|one| one == it));
        match &self.operator {
            Operator::In(values) => is_one_of(values),
            // A label that is missing has none of the values.
            Operator::NotIn(values) => !is_one_of(values),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

fn text(value: &Value) -> Result<String> {
    let text = value.as_str().context("it has a value that is no text")?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
        json!({ "key": key, "operator": operator, "values": values })
    }

    #[test]
    fn labels_are_matched_as_in_kubernetes() {
        let labels = json!({ "size": "large", "arch": "arm64" });
        let one = |it: Value| json!({ "matchExpressions": [it] });
        for (selector, expected) in [
            (Value::Null, true),
            (json!({}), true),
            (json!({ "matchLabels": {} }), true),
            (json!({ "matchLabels": { "size": "large" } }), true),
            (json!({ "matchLabels": { "size": "small" } }), false),
            (json!({ "matchLabels": { "zone": "a" } }), false),
            (
                json!({ "matchLabels": { "size": "large", "arch": "amd64" } }),
                false,
            ),
            (one(expression("arch", "In", &["amd64", "arm64"])), true),
            (one(expression("arch", "In", &["ppc64le"])), false),
            (one(expression("zone", "In", &["a"])), false),
            (one(expression("arch", "NotIn", &["amd64"])), true),
            (one(expression("arch", "NotIn", &["arm64"])), false),
            (one(expression("zone", "NotIn", &["a"])), true),
            (one(expression("size", "Exists", &[])), true),
            (one(expression("zone", "Exists", &[])), false),
            (one(expression("zone", "DoesNotExist", &[])), true),
            (one(expression("size", "DoesNotExist", &[])), false),
            // All requirements hold.
            (
                json!({
                    "matchLabels": { "size": "large" },
                    "matchExpressions": [expression("arch", "NotIn", &["arm64"])],
                }),
                false,
            ),
        ] {
            let found = Selector::parse(&selector).unwrap().matches(&labels);
            assert_eq!(found, expected, "{selector}");
        }
        let arch = Selector::parse(&one(expression("arch", "Exists", &[]))).unwrap();
        assert!(!arch.matches(&Value::Null), "an Agent without labels");
    }

    /// Machines with a selector that cannot be read take no Agent.
    #[test]
    fn invalid_selectors_are_rejected() {
        for invalid in [
            json!("size=large"),
            json!({ "matchLabel": { "size": "large" } }),
            json!({ "matchLabels": [] }),
            json!({ "matchLabels": { "size": 1 } }),
            json!({ "matchExpressions": { "key": "size" } }),
            json!({ "matchExpressions": [{ "operator": "Exists" }] }),
            json!({ "matchExpressions": [{ "key": "size" }] }),
            json!({ "matchExpressions": [expression("size", "Gt", &["1"])] }),
            json!({ "matchExpressions": [expression("size", "In", &[])] }),
            json!({ "matchExpressions": [expression("size", "Exists", &["large"])] }),
        ] {
            assert!(Selector::parse(&invalid).is_err(), "{invalid}");
        }
    }
}
