//! Which rules the table shows accepting and refusing.

use std::collections::BTreeSet;

use kube_cel::ValidationError;
use serde_json::Value;

/// Rules that no object breaks, because the API server fills in a default or refuses the object for its schema first.
/// They are there for objects and versions of the schema from before: the path, and how the message begins.
const NEVER_BROKEN: [(&str, &str); 9] = [
    ("spec", "arch cannot be removed"),
    ("spec", "a signing key of your own needs"),
    (
        "spec.etcd.managed.storage.restoreSnapshotURL",
        "there can be one snapshot",
    ),
    (
        "spec.platform.azure.image.azureMarketplace",
        "name the image",
    ),
    ("spec.subnetSelectorTerms", "a term is required"),
    ("spec.subnetSelectorTerms", "each term needs"),
    ("spec.securityGroupSelectorTerms", "a term is required"),
    ("spec.securityGroupSelectorTerms", "each term needs"),
    ("spec.capacityReservationSelectorTerms", "each term needs"),
];

/// A rule, and its path. `[]` is any item of a list, `{}` any value of a map.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) path: String,
    pub(crate) expression: String,
    pub(crate) message: String,
}

impl Rule {
    fn is_never_broken(&self) -> bool {
        let is = |(path, message): &(&str, &str)| {
            self.path == *path && self.message.starts_with(message)
        };
        NEVER_BROKEN.iter().any(is)
    }
}

/// What the table has shown of the rules of one definition.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Path and rule.
    accepted: BTreeSet<(String, String)>,
    refused: BTreeSet<(String, String)>,
}

impl Coverage {
    /// The rules that an accepted object has to do with.
    pub(crate) fn accepted(&mut self, schema: &Value, old: Option<&Value>, object: &Value) {
        self.walk("", schema, old, object);
    }

    /// The rules that refuse.
    pub(crate) fn refused(&mut self, errors: &[ValidationError]) {
        for error in errors {
            let path = without_indexes(&error.field_path);
            self.refused.insert((path, error.rule.clone()));
        }
    }

    /// Rules that the table does not show in full.
    pub(crate) fn gaps(&self, schema: &Value) -> Vec<String> {
        let mut gaps = Vec::new();
        for rule in rules(schema) {
            let key = (rule.path.clone(), rule.expression.clone());
            let gap = |what| {
                format!(
                    "{what} the rule at {}: {} ({})",
                    rule.path, rule.message, rule.expression
                )
            };
            if !self.accepted.contains(&key) {
                gaps.push(gap("no accepted object has to do with"));
            }
            match (self.refused.contains(&key), rule.is_never_broken()) {
                (true, true) => gaps.push(gap("something does break")),
                (false, false) => gaps.push(gap("nothing breaks")),
                (true, false) | (false, true) => {}
            }
        }
        gaps
    }

    fn walk(&mut self, path: &str, schema: &Value, old: Option<&Value>, value: &Value) {
        for rule in own_rules(path, schema) {
            // Rules about a change have nothing to say where there was nothing before.
            if old.is_some() || !rule.expression.contains("oldSelf") {
                self.accepted.insert((rule.path, rule.expression));
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let inner = value.get(name).or_else(|| property.get("default"));
            if let Some(inner) = inner {
                let old = old.and_then(|old| old.get(name).or_else(|| property.get("default")));
                self.walk(&join(path, name), property, old, inner);
            }
        }
        if let Some(items) = schema.get("items") {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                // Rules about a change are for items of maps only; the table does not reorder them.
                let old = old.and_then(|old| old.get(index));
                self.walk(&format!("{path}[]"), items, old, item);
            }
        }
        if let Some(values) = schema.get("additionalProperties") {
            for value in value
                .as_object()
                .into_iter()
                .flatten()
                .map(|(_, value)| value)
            {
                self.walk(&format!("{path}{{}}"), values, None, value);
            }
        }
    }
}

/// All rules of a schema.
pub(crate) fn rules(schema: &Value) -> Vec<Rule> {
    let mut found = Vec::new();
    collect("", schema, &mut found);
    found
}

fn collect(path: &str, schema: &Value, found: &mut Vec<Rule>) {
    found.extend(own_rules(path, schema));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(&join(path, name), property, found);
    }
    if let Some(items) = schema.get("items") {
        collect(&format!("{path}[]"), items, found);
    }
    if let Some(values) = schema.get("additionalProperties") {
        collect(&format!("{path}{{}}"), values, found);
    }
}

fn own_rules(path: &str, schema: &Value) -> Vec<Rule> {
    let rules = schema["x-kubernetes-validations"].as_array();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rule = |rule: &Value| Rule {
        path: path.to_owned(),
        expression: text(&rule["rule"]),
        message: text(&rule["message"]),
    };
    rules.into_iter().flatten().map(rule).collect()
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// `a[3].b` is `a[].b`.
fn without_indexes(path: &str) -> String {
    let mut parts = path.split('[');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once(']').map_or(part, |(_, rest)| rest);
        out.push_str("[]");
        out.push_str(rest);
    }
    out
}
