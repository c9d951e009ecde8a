//! What applying an object changes: the live object against what the API server says would come of it. Pure.

use std::fmt;

use serde_json::{Map, Value};

use super::kind::Kind;

/// How many changed fields are listed.
const SHOWN: usize = 8;
/// How much of a value is shown.
const VALUE_WIDTH: usize = 60;
/// Metadata that the API server writes by itself.
const OF_THE_SERVER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What applying an object does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Create,
    Change(Vec<Change>),
    /// The values stay; who manages them changes.
    Claim,
    Unchanged,
}

/// One changed field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    path: String,
    /// Before and after; nothing where it is secret.
    values: Option<(String, String)>,
}

// === impl Outcome ===

impl Outcome {
    /// What comes of an object, by what is there and what would be.
    pub(crate) fn of(kind: Kind, live: Option<&Value>, after: &Value) -> Self {
        let Some(live) = live else {
            return Self::Create;
        };
        let mut changes = Vec::new();
        compare("", &stripped(live), &stripped(after), &mut changes);
        if kind == Kind::Secret {
            for change in &mut changes {
                change.values = None;
            }
        }
        if !changes.is_empty() {
            return Self::Change(changes);
        }
        if owners(live) != owners(after) {
            return Self::Claim;
        }
        Self::Unchanged
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("create"),
            Self::Claim => f.write_str("take over fields, values unchanged"),
            Self::Unchanged => f.write_str("unchanged"),
            Self::Change(changes) => {
                f.write_str("change")?;
                for change in changes.iter().take(SHOWN) {
                    write!(f, "\n    {change}")?;
                }
                match changes.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n    and {more} more fields"),
                }
            }
        }
    }
}

// === impl Change ===

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.values {
            Some((before, after)) => write!(f, "{}: {before} -> {after}", self.path),
            None => write!(f, "{}: (secret)", self.path),
        }
    }
}

/// The object as its owners wrote it.
fn stripped(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(fields) = &mut object {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|name, _| !OF_THE_SERVER.contains(&name.as_str()));
        }
    }
    object
}

/// Who manages which fields, times left out.
fn owners(object: &Value) -> Value {
    let mut owners = object["metadata"]["managedFields"].clone();
    if let Value::Array(entries) = &mut owners {
        entries.retain(|entry| entry["subresource"].is_null());
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries.sort_by_key(|entry| entry["manager"].to_string() + &entry["operation"].to_string());
    }
    owners
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => compare_objects(path, old, new, changes),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(&format!("{path}[{index}]"), old, new, changes);
            }
        }
        (old, new) if old == new => {}
        (old, new) => changes.push(Change {
            path: path.to_owned(),
            values: Some((shown(old), shown(new))),
        }),
    }
}

fn compare_objects(
    path: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let added = new.keys().filter(|name| !old.contains_key(*name));
    for name in old.keys().chain(added) {
        let inner = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let of = |fields: &Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        compare(&inner, &of(old), &of(new), changes);
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => shortened(text),
        other => shortened(&other.to_string()),
    }
}

fn shortened(text: &str) -> String {
    let line: String = text.chars().take(VALUE_WIDTH).collect();
    let line = line.replace('\n', " ");
    if line.chars().count() < text.chars().count() {
        return format!("{line}...");
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(image: &str, manager: &str, time: &str) -> Value {
        json!({
            "metadata": {
                "name": "a",
                "resourceVersion": time,
                "managedFields": [{"manager": manager, "operation": "Apply", "time": time}],
            },
            "spec": {"containers": [{"image": image}]},
            "status": {"replicas": time},
        })
    }

    #[test]
    fn outcomes_distinguish_values_from_managers() {
        let live = object("a:1", "us", "1");
        let of = |after: &Value| Outcome::of(Kind::Deployment, Some(&live), after);
        assert_eq!(of(&object("a:1", "us", "2")), Outcome::Unchanged);
        assert_eq!(of(&object("a:1", "them", "1")), Outcome::Claim);
        assert_eq!(
            of(&object("a:2", "us", "1")).to_string(),
            "change\n    spec.containers[0].image: a:1 -> a:2"
        );
        assert_eq!(Outcome::of(Kind::Deployment, None, &live), Outcome::Create);
    }

    #[test]
    fn added_and_removed_fields_are_changes() {
        let before = json!({"spec": {"a": 1, "b": 2}});
        let after = json!({"spec": {"b": 2, "c": [1]}});
        let outcome = Outcome::of(Kind::Service, Some(&before), &after);
        assert_eq!(
            outcome.to_string(),
            "change\n    spec.a: 1 -> none\n    spec.c: none -> [1]"
        );
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let before = json!({"data": {"a": "aHVudGVyMg=="}});
        let after = json!({"data": {"a": "aHVudGVyMw=="}});
        let text = Outcome::of(Kind::Secret, Some(&before), &after).to_string();
        assert_eq!(text, "change\n    data.a: (secret)");
    }
}
