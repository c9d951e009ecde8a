//! Label and field selectors.

use serde_json::Value;

use crate::failure::Failure;

/// Which objects a list or a watch is about. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

// === impl Selector ===

impl Selector {
    /// Reads the query parameters `labelSelector` and `fieldSelector`.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, Failure> {
        let fields = requirements(fields)?;
        for field in &fields {
            let is_known = ["metadata.name", "metadata.namespace"].contains(&field.key.as_str());
            if !is_known || field.values.is_empty() {
                let key = &field.key;
                return Err(Failure::bad_request(format!(
                    "field label not supported: {key}"
                )));
            }
        }
        Ok(Self {
            labels: requirements(labels)?,
            fields,
        })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let label = |it: &Requirement| it.holds(metadata["labels"][&it.key].as_str());
        let field = |it: &Requirement| {
            let name = it.key.trim_start_matches("metadata.");
            it.holds(Some(metadata[name].as_str().unwrap_or_default()))
        };
        self.labels.iter().all(label) && self.fields.iter().all(field)
    }
}

// === impl Requirement ===

impl Requirement {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let new = |key: &str, operator, values: Vec<String>| {
            let key = key.trim();
            let is_key = !key.is_empty() && !key.contains([' ', '(', ')', '=', '!']);
            is_key.then(|| Self {
                key: key.to_owned(),
                operator,
                values,
            })
        };
        let one = |value: &str| vec![value.trim().to_owned()];
        if let Some((key, value)) = text.split_once("!=") {
            return new(key, Operator::NotIn, one(value));
        }
        if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return new(key, Operator::In, one(value));
        }
        if let Some(set) = text.strip_suffix(')') {
            let (head, values) = set.split_once('(')?;
            let (key, operator) = head.trim().rsplit_once(' ')?;
            let operator = match operator {
                "in" => Operator::In,
                "notin" => Operator::NotIn,
                _ => return None,
            };
            return new(key, operator, values.split(',').flat_map(one).collect());
        }
        match text.strip_prefix('!') {
            Some(key) => new(key, Operator::DoesNotExist, Vec::new()),
            None => new(text, Operator::Exists, Vec::new()),
        }
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|it| it == value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

fn requirements(text: &str) -> Result<Vec<Requirement>, Failure> {
    let parts = split(text)
        .into_iter()
        .filter(|part| !part.trim().is_empty());
    let parsed = parts.map(|part| {
        Requirement::parse(part)
            .ok_or_else(|| Failure::bad_request(format!("unable to parse requirement: {part}")))
    });
    parsed.collect()
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_in_set) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            '(' => is_in_set = true,
            ')' => is_in_set = false,
            ',' if !is_in_set => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_selected_by_labels_and_fields() {
        let object = json!({
            "metadata": { "name": "a", "namespace": "n", "labels": { "app": "x", "tier": "" } },
        });
        for (labels, fields, expected) in [
            ("", "", true),
            ("app=x", "", true),
            ("app==x,tier", "", true),
            ("app = y", "", false),
            ("app!=y,other!=z", "", true),
            ("app!=x", "", false),
            ("app in (x, y),!other", "", true),
            ("app notin (x,y)", "", false),
            ("other in (x)", "", false),
            ("other notin (x)", "", true),
            ("!tier", "", false),
            ("", "metadata.name=a,metadata.namespace=n", true),
            ("", "metadata.name!=a", false),
            ("app=x", "metadata.name=b", false),
        ] {
            let selector = Selector::parse(labels, fields).unwrap();
            assert_eq!(selector.matches(&object), expected, "{labels} {fields}");
        }
    }

    #[test]
    fn selectors_that_cannot_be_read_are_rejected() {
        for (labels, fields) in [
            ("app in x)", ""),
            ("app near (x)", ""),
            ("=x", ""),
            ("", "spec.host=x"),
            ("", "metadata.name"),
        ] {
            let failure = Selector::parse(labels, fields).unwrap_err();
            assert_eq!(failure.code, 400, "{labels} {fields}");
        }
    }
}
