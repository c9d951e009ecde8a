//! Whether a target says the same as its original.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::groups::Groups;
use crate::object::Object;
use crate::target::{self, Current, MIGRATED_FROM, SERVERS_OWN};

/// The most differences that are reported.
const MOST: usize = 5;

/// Where a target differs from its original, as JSON pointers; the first few.
pub fn differences(
    groups: &Groups,
    original: &Object,
    target: &Object,
    current: Current,
) -> Vec<String> {
    let mut desired = original.body().clone();
    groups.swap_object(&original.key().kind, &mut desired);
    if let Some(status) = target::status(groups, original, target.generation(), current) {
        desired["status"] = status;
    }
    let mut found = target.body().clone();
    plain(&mut desired);
    plain(&mut found);
    let mut differences = Vec::new();
    compare(&desired, &found, "", &mut differences);
    differences
}

/// Whether the entries of two lists of field owners are of the same managers.
pub(super) fn same_managers(one: &[Value], other: &[Value]) -> bool {
    let managers = |entries: &[Value]| -> BTreeSet<String> {
        let names = entries.iter().map(|entry| {
            let part = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            ["manager", "operation", "subresource", "apiVersion"]
                .map(part)
                .join(" ")
        });
        names.collect()
    };
    managers(one) == managers(other)
}

/// An object less what may differ; an empty map or list is the same as none.
fn plain(body: &mut Value) {
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    for field in SERVERS_OWN {
        metadata.remove(field);
    }
    if let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(MIGRATED_FROM);
    }
    metadata.retain(|_, value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    if let Some(fields) = body.as_object_mut() {
        let empty = |status: &Value| status.as_object().is_some_and(serde_json::Map::is_empty);
        fields.retain(|name, value| name != "status" || !empty(value));
    }
}

fn compare(desired: &Value, found: &Value, at: &str, differences: &mut Vec<String>) {
    if desired == found || differences.len() >= MOST {
        return;
    }
    let (Value::Object(one), Value::Object(other)) = (desired, found) else {
        differences.push(if at.is_empty() { "/" } else { at }.to_owned());
        return;
    };
    let names: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for name in names {
        let (one, other) = (one.get(name), other.get(name));
        let none = Value::Null;
        compare(
            one.unwrap_or(&none),
            other.unwrap_or(&none),
            &format!("{at}/{name}"),
            differences,
        );
    }
}
