//! Whether an apply would change the object: pure.
//!
//! It would not if the live object has all desired fields, and all fields that this manager owns are still desired. The
//! API server records what each manager has applied in `managedFields`. So a field that is no longer desired is found,
//! and fields that others have added are not touched.
//!
//! Comparing what was applied last ([`Memory`](super::Memory)) answers the same question for a running process, without
//! these lists, and is asked first. It cannot answer for a process that has just become the leader: that would have to
//! apply every object once, to learn from the API server that nothing changes. For 1,000 clusters these are 30,000
//! writes, each dearer for the API server than the read that is compared here, and each a write in the audit log at every
//! change of the leader. A wrong answer here costs one apply, or leaves a field of a shared list to another manager.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::{Map, Value};

use super::memory::Part;

/// What the API server calls a server-side apply in `managedFields`.
const APPLY: &str = "Apply";
/// Lists that others may add items to, in any order.
const SHARED: [&str; 11] = [
    "conditions",
    "containers",
    "env",
    "finalizers",
    "imagePullSecrets",
    "initContainers",
    "ownerReferences",
    "secrets",
    "topologySpreadConstraints",
    "volumeMounts",
    "volumes",
];
/// Maps whose keys have no schema: an empty value is stored, and differs from a missing one.
const MAPS: [&str; 6] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
];
/// Maps of quantities, which the API server normalizes.
const QUANTITIES: [&str; 4] = ["capacity", "hard", "limits", "requests"];

/// Whether applying `wanted` as `manager` would leave the live object as it is.
pub(super) fn is_settled(
    part: Part,
    wanted: &Value,
    live: &Value,
    metadata: &ObjectMeta,
    manager: &str,
) -> bool {
    let mut entries = metadata.managed_fields.iter().flatten();
    let Some(entry) = entries.find(|entry| is_ours(entry, part, wanted, manager)) else {
        return false;
    };
    let owned = entry.fields_v1.as_ref().map(|fields| &fields.0);
    owned.is_none_or(|owned| covers(wanted, owned)) && holds("", live, wanted)
}

/// The desired object without nulls, which would be applied as values.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            let kept = kept.map(|(key, value)| (key, without_nulls(value)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn is_ours(entry: &ManagedFieldsEntry, part: Part, wanted: &Value, manager: &str) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some(APPLY)
        && entry.subresource.as_deref() == part.subresource()
        && entry.api_version.as_deref() == wanted["apiVersion"].as_str()
}

/// Whether all fields of a set in the format `fieldsV1` are desired.
fn covers(wanted: &Value, owned: &Value) -> bool {
    let Value::Object(owned) = owned else {
        return true;
    };
    owned
        .iter()
        .all(|(path, children)| match path.split_once(':') {
            Some(("f", field)) => wanted.get(field).is_some_and(|it| covers(it, children)),
            Some(("k", key)) => any(wanted, |item| has_key(item, key) && covers(item, children)),
            Some(("v", value)) => any(wanted, |item| is_json(item, value)),
            // "." is the item itself.
            None => true,
            Some(_) => false,
        })
}

fn any(list: &Value, is_it: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(is_it))
}

/// Whether an item has a key. The API server fills in what the item omits.
fn has_key(item: &Value, key: &str) -> bool {
    let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
    key.iter()
        .all(|(field, value)| item.get(field).is_none_or(|found| found == value))
}

fn is_json(item: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| *item == value)
}

/// Whether a live value under `field` has everything that is desired.
fn holds(field: &str, live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => holds_fields(field, live, wanted),
        (Value::Array(live), Value::Array(wanted)) if SHARED.contains(&field) => wanted
            .iter()
            .all(|item| live.iter().any(|found| holds("", found, item))),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, it)| holds("", live, it))
        }
        _ => live == wanted,
    }
}

fn holds_fields(field: &str, live: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    let is_quantity = QUANTITIES.contains(&field);
    wanted.iter().all(|(key, wanted)| match live.get(key) {
        // Empty values are often not stored, but keys that users choose are.
        None => !MAPS.contains(&field) && is_empty(key, wanted),
        Some(live) if is_quantity => live == wanted || same_quantity(live, wanted),
        Some(live) => holds(key, live, wanted),
    })
}

/// Whether a value under `field` may be missing in the stored object.
fn is_empty(field: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) if MAPS.contains(&field) => fields.is_empty(),
        Value::Object(fields) => fields.iter().all(|(key, it)| is_empty(key, it)),
    }
}

/// Whether two quantities are equal: `1000m` and `1`.
fn same_quantity(one: &Value, other: &Value) -> bool {
    let quantity = |value: &Value| value.as_str().and_then(thousandths);
    quantity(one).is_some_and(|one| quantity(other) == Some(one))
}

fn thousandths(quantity: &str) -> Option<i128> {
    let end = quantity.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = quantity.split_at(end.unwrap_or(quantity.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let scale = scale(unit)?;
    let whole: i128 = whole.parse().ok()?;
    let digits = u32::try_from(part.len())
        .ok()
        .filter(|digits| *digits < 9)?;
    let part: i128 = if part.is_empty() {
        0
    } else {
        part.parse().ok()?
    };
    Some(whole * scale + part * scale / 10_i128.pow(digits))
}

/// The thousandths in a unit.
fn scale(unit: &str) -> Option<i128> {
    let binary = |power: u32| 1000 * 1024_i128.pow(power);
    let decimal = |power: u32| 1000_i128.pow(power + 1);
    Some(match unit {
        "m" => 1,
        "" => decimal(0),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    use super::*;

    const MANAGER: &str = "m";

    fn metadata(fields: Value) -> ObjectMeta {
        let entry = ManagedFieldsEntry {
            api_version: Some("v1".to_owned()),
            fields_type: Some("FieldsV1".to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            manager: Some(MANAGER.to_owned()),
            operation: Some(APPLY.to_owned()),
            subresource: None,
            time: None,
        };
        ObjectMeta {
            managed_fields: Some(vec![entry]),
            ..ObjectMeta::default()
        }
    }

    fn settled(wanted: &Value, live: &Value, owned: Value) -> bool {
        let mut wanted = wanted.clone();
        wanted["apiVersion"] = json!("v1");
        let mut live = live.clone();
        live["apiVersion"] = json!("v1");
        is_settled(Part::Main, &wanted, &live, &metadata(owned), MANAGER)
    }

    #[test]
    fn desired_fields_are_compared_and_fields_of_others_ignored() {
        let table = [
            (
                "the same",
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "1"}}),
                true,
            ),
            (
                "another manager added a field",
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "1", "b": "2"}}),
                true,
            ),
            (
                "another manager changed a field",
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "2"}}),
                false,
            ),
            (
                "another manager removed a field",
                json!({"data": {"a": "1"}}),
                json!({"data": {}}),
                false,
            ),
            (
                "empty values are not stored",
                json!({"data": {}, "immutable": false}),
                json!({}),
                true,
            ),
            (
                "a key with an empty value is missing",
                json!({"data": {"a": "1", "b": ""}}),
                json!({"data": {"a": "1"}}),
                false,
            ),
            (
                "the only key has an empty value, and is missing",
                json!({"metadata": {"labels": {"a": ""}}}),
                json!({"metadata": {}}),
                false,
            ),
            (
                "a container was injected",
                json!({"containers": [{"name": "a", "image": "i"}]}),
                json!({"containers": [{"name": "z"}, {"name": "a", "image": "i", "tty": false}]}),
                true,
            ),
            (
                "a rule was added",
                json!({"rules": [{"verbs": ["get"]}]}),
                json!({"rules": [{"verbs": ["get"]}, {"verbs": ["*"]}]}),
                false,
            ),
            (
                "an argument was added",
                json!({"args": ["a"]}),
                json!({"args": ["a", "b"]}),
                false,
            ),
            (
                "an equal quantity",
                json!({"requests": {"cpu": "1000m", "memory": "1.5Gi", "pods": "2k"}}),
                json!({"requests": {"cpu": "1", "memory": "1536Mi", "pods": "2k"}}),
                true,
            ),
            (
                "another quantity",
                json!({"requests": {"cpu": "10m"}}),
                json!({"requests": {"cpu": "10"}}),
                false,
            ),
        ];
        for (name, wanted, live, expected) in table {
            assert_eq!(settled(&wanted, &live, json!({})), expected, "{name}");
        }
    }

    #[test]
    fn owned_fields_that_are_no_longer_desired_are_found() {
        let live = json!({
            "metadata": { "labels": { "a": "1", "b": "2" }, "finalizers": ["x.io/f"] },
            "ports": [{ "port": 80, "protocol": "TCP", "name": "web" }],
        });
        let owned = json!({
            "f:metadata": { "f:labels": { "f:a": {}, "f:b": {} }, "f:finalizers": { "v:\"x.io/f\"": {} } },
            "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {}, "f:name": {} } },
        });
        let mut wanted = json!({
            "metadata": { "labels": { "a": "1", "b": "2" }, "finalizers": ["x.io/f"] },
            "ports": [{ "port": 80, "name": "web" }],
        });
        assert!(settled(&wanted, &live, owned.clone()));
        for path in ["/metadata/labels", "/metadata/finalizers", "/ports"] {
            let mut less = wanted.clone();
            *less.pointer_mut(path).unwrap() = json!(null);
            assert!(
                !settled(&without_nulls(less), &live, owned.clone()),
                "{path}"
            );
        }
        wanted["ports"][0]["name"].take();
        assert!(!settled(&without_nulls(wanted), &live, owned));
    }

    #[test]
    fn fields_of_other_managers_and_subresources_do_not_count() {
        let object = json!({ "apiVersion": "v1" });
        let metadata = metadata(json!({}));
        let settled = |part, manager| is_settled(part, &object, &object, &metadata, manager);
        assert!(settled(Part::Main, MANAGER));
        assert!(!settled(Part::Status, MANAGER));
        assert!(!settled(Part::Main, "other"));
        let newer = json!({ "apiVersion": "v2" });
        assert!(!is_settled(Part::Main, &newer, &newer, &metadata, MANAGER));
    }
}
