//! What a cluster refers to must be there, with the keys that are needed.

use std::collections::BTreeMap;

use super::Problems;
use crate::hosted_cluster::facts::{Facts, Found};
use crate::hosted_cluster::references::{Purpose, Reference};

/// What speaks against the references.
pub(super) fn problems(facts: &Facts) -> Problems {
    let referenced = facts.referenced.iter();
    // A missing pull secret is told with the release that cannot be read.
    let referenced = referenced.filter(|(reference, _)| reference.purpose != Purpose::PullSecret);
    let mut problems: Problems = referenced
        .filter_map(|(reference, found)| problem(&facts.id.namespace, reference, found))
        .collect();
    problems.extend(labels(&facts.cluster.spec.labels));
    problems
}

fn problem(namespace: &str, reference: &Reference, found: &Found) -> Option<String> {
    let Reference {
        kind,
        name,
        field,
        keys,
        ..
    } = reference;
    let kind = kind.as_str();
    if matches!(found, Found::Missing) {
        return Some(format!(
            "{field} names the {kind} {namespace}/{name}, which is not there: create it"
        ));
    }
    let missing: Vec<_> = keys.iter().filter(|key| !found.has(key)).cloned().collect();
    (!missing.is_empty()).then(|| {
        let keys = missing.join(", ");
        format!("{field} names the {kind} {namespace}/{name}, which lacks {keys}: add it")
    })
}

/// Labels of pods have a form of their own.
fn labels(labels: &BTreeMap<String, String>) -> Problems {
    let wrong = labels
        .iter()
        .filter(|(key, value)| !is_key(key) || !is_value(value));
    wrong
        .map(|(key, value)| {
            format!(
                "spec.labels has {key}={value}, which pods cannot have: a key is [prefix/]name, and names and values \
                 are at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            )
        })
        .collect()
}

fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => !key.is_empty() && is_value(key),
        Some((prefix, name)) => {
            let label = |label: &str| {
                !label.is_empty()
                    && label
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            };
            prefix.len() <= 253
                && prefix.split('.').all(label)
                && !name.is_empty()
                && is_value(name)
        }
    }
}

fn is_value(value: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 63
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && value.chars().next().is_none_or(ends)
        && value.chars().last().is_none_or(ends)
}
