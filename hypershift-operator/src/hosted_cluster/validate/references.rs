//! Referenced objects must exist, with the required keys.

use std::collections::BTreeMap;

use control_plane_component::is_reserved_label;

use super::Problems;
use crate::facts::Facts;
use crate::facts::references::{Purpose, Reference, is_reserved};

/// Problems of the references.
pub(super) fn problems(facts: &Facts) -> Problems {
    let referenced = facts.referenced.iter();
    // A missing pull secret is reported with the unreadable release.
    let referenced = referenced.filter(|(reference, _)| reference.purpose != Purpose::PullSecret);
    let mut problems: Problems = referenced
        .filter_map(|(reference, found)| reference.problem(&facts.id.namespace, found))
        .collect();
    problems.extend(names(facts));
    problems.extend(labels(&facts.cluster.spec.labels));
    problems
}

/// A copy keeps the name that the user chose, and must not take the place of an object of the control plane.
fn names(facts: &Facts) -> Problems {
    let (home, away) = (&facts.id.namespace, &facts.namespace);
    let references = facts.referenced.iter().map(|(reference, _)| reference);
    let is_reserved = |it: &&Reference| is_reserved(&it.name, facts.infra_id());
    let reserved = references.filter(|it| it.purpose.keeps_name() && is_reserved(it));
    let taken = facts.occupied.iter().filter(|it| !is_reserved(it));
    reserved
        .chain(taken)
        .map(|reference| {
            let (field, kind, name) = (&reference.field, reference.kind.as_str(), &reference.name);
            format!(
                "{field} names {kind} {home}/{name}, and the name is used by another {kind} of control plane namespace {away}: create the {kind} with another name, and set {field} to it"
            )
        })
        .collect()
}

/// Pod labels must be valid, and some are reserved.
fn labels(labels: &BTreeMap<String, String>) -> Problems {
    let wrong = labels
        .iter()
        .filter(|(key, value)| !is_key(key) || !is_value(value));
    let reserved = labels.keys().filter(|key| is_reserved_label(key));
    let reserved = reserved.map(|key| {
        format!(
            "spec.labels has {key}, by which Services and NetworkPolicies select pods: remove it, or use another key"
        )
    });
    wrong
        .map(|(key, value)| {
            format!(
                "spec.labels has {key}={value}, which is not a valid label: a key is [prefix/]name; names and values have at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit"
            )
        })
        .chain(reserved)
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
