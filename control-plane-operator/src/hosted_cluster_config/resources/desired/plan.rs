//! What has to be written so that a live object becomes the desired one: pure.
//!
//! The API server adds defaults to objects. Defaults of enforced fields are recognized by [`DEFAULTS`], so that a pass
//! without a change writes nothing.

use serde_json::{Map, Value, json};

use super::object::{MANAGED, Mode, Object};

/// Fields with the values that the API server adds. Null stands for any value.
const DEFAULTS: [(&str, &str); 25] = [
    ("apiVersion", r#""v1""#),
    ("dnsPolicy", r#""ClusterFirst""#),
    ("failurePolicy", r#""Fail""#),
    ("failureThreshold", "3"),
    ("imagePullPolicy", "null"),
    ("matchPolicy", r#""Equivalent""#),
    ("namespaceSelector", "{}"),
    ("objectSelector", "{}"),
    ("periodSeconds", "10"),
    ("protocol", r#""TCP""#),
    ("reinvocationPolicy", r#""Never""#),
    ("resources", "{}"),
    ("restartPolicy", r#""Always""#),
    ("revisionHistoryLimit", "10"),
    ("schedulerName", r#""default-scheduler""#),
    ("scheme", r#""HTTP""#),
    ("scope", r#""*""#),
    ("securityContext", "{}"),
    ("serviceAccount", "null"),
    ("successThreshold", "1"),
    ("terminationGracePeriodSeconds", "30"),
    ("terminationMessagePath", r#""/dev/termination-log""#),
    ("terminationMessagePolicy", r#""File""#),
    ("timeoutSeconds", "null"),
    ("type", r#""""#),
];
/// Fields that hold maps with keys of users, to which no defaults are added.
const MAPS: [&str; 6] = [
    "annotations",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "parameters",
];
/// Fields that are handled separately.
const SPECIAL: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// A request that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Create this object. Its status is not part of the request where it is a subresource.
    Create(Value),
    /// Send this merge patch.
    Patch(Value),
    /// Send this merge patch to the subresource `status`.
    PatchStatus(Value),
    /// Delete the object.
    Delete,
}

/// Compares an object with the live one, and returns the requests that are needed, in order.
pub fn plan(object: &Object, live: Option<&Value>) -> Vec<Write> {
    match (object.mode, live) {
        (Mode::Delete, None) => Vec::new(),
        (Mode::Delete, Some(live)) if is_being_deleted(live) => Vec::new(),
        (Mode::Delete, Some(_)) => vec![Write::Delete],
        (Mode::Create, Some(live)) => label(object, live),
        (Mode::Enforce | Mode::Merge | Mode::Create, None) => creation(object),
        (Mode::Enforce | Mode::Merge, Some(live)) => update(object, live),
    }
}

fn is_being_deleted(live: &Value) -> bool {
    live["metadata"]["deletionTimestamp"].is_string()
}

fn creation(object: &Object) -> Vec<Write> {
    let mut value = labelled(object);
    merge(&mut value, &object.initial);
    let mut value = without_nulls(value);
    let mut writes = Vec::new();
    if object.key().has_status_subresource()
        && let Some(fields) = value.as_object_mut()
        && let Some(status) = fields.remove("status")
    {
        writes.push(Write::PatchStatus(json!({ "status": status })));
    }
    writes.insert(0, Write::Create(value));
    writes
}

fn update(object: &Object, live: &Value) -> Vec<Write> {
    let value = labelled(object);
    let is_enforced = object.mode == Mode::Enforce;
    let target = |field: &str, desired: &Value| {
        let live = live.get(field).unwrap_or(&Value::Null);
        if is_enforced {
            enforced(field, live, desired)
        } else {
            merged(live, desired)
        }
    };
    let mut patch = Map::new();
    for (field, desired) in value.as_object().into_iter().flatten() {
        if !SPECIAL.contains(&field.as_str()) {
            add_difference(&mut patch, live, field, &target(field, desired));
        }
    }
    let metadata = metadata_patch(&value["metadata"], &live["metadata"]);
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    let mut status = Map::new();
    if let Some(desired) = value.get("status") {
        add_difference(&mut status, live, "status", &target("status", desired));
    }
    if !object.key().has_status_subresource() {
        patch.append(&mut status);
    }
    let mut writes = Vec::new();
    if !patch.is_empty() {
        writes.push(Write::Patch(Value::Object(patch)));
    }
    if !status.is_empty() {
        writes.push(Write::PatchStatus(Value::Object(status)));
    }
    writes
}

/// Only sets the label, without which the object is not watched.
fn label(object: &Object, live: &Value) -> Vec<Write> {
    if !object.is_labelled {
        return Vec::new();
    }
    let desired = json!({ "labels": { MANAGED: "true" } });
    let metadata = metadata_patch(&desired, &live["metadata"]);
    if metadata.is_empty() {
        return Vec::new();
    }
    vec![Write::Patch(json!({ "metadata": metadata }))]
}

/// The desired object with the label of all managed objects.
fn labelled(object: &Object) -> Value {
    let mut value = object.value.clone();
    if object.is_labelled {
        value["metadata"]["labels"][MANAGED] = json!("true");
    }
    value
}

/// Labels and annotations belong to many writers: only the desired keys are set.
fn metadata_patch(desired: &Value, live: &Value) -> Map<String, Value> {
    let mut patch = Map::new();
    for field in ["labels", "annotations"] {
        if let Some(keys) = desired.get(field) {
            let live = live.get(field).unwrap_or(&Value::Null);
            if let Some(part) = difference(live, &merged(live, keys)) {
                patch.insert(field.to_owned(), part);
            }
        }
    }
    patch
}

fn add_difference(patch: &mut Map<String, Value>, live: &Value, field: &str, target: &Value) {
    let live = live.get(field).unwrap_or(&Value::Null);
    if let Some(part) = difference(live, target) {
        patch.insert(field.to_owned(), part);
    }
}

/// The value of an enforced field: the desired value, with the defaults that the live one has.
fn enforced(field: &str, live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut target = Map::new();
            for (key, value) in live {
                if !MAPS.contains(&field) && !desired.contains_key(key) && is_default(key, value) {
                    target.insert(key.clone(), value.clone());
                }
            }
            for (key, value) in desired.iter().filter(|(_, value)| !value.is_null()) {
                let live = live.get(key).unwrap_or(&Value::Null);
                target.insert(key.clone(), enforced(key, live, value));
            }
            Value::Object(target)
        }
        (Value::Array(live), Value::Array(desired)) => {
            let live = live.iter().chain(std::iter::repeat(&Value::Null));
            let items = live.zip(desired);
            Value::Array(items.map(|(live, it)| enforced(field, live, it)).collect())
        }
        _ => without_nulls(desired.clone()),
    }
}

fn is_default(key: &str, value: &Value) -> bool {
    DEFAULTS.iter().any(|(field, default)| {
        let default = serde_json::from_str::<Value>(default).unwrap_or_default();
        *field == key && (default.is_null() || default == *value)
    })
}

/// The live value with the desired fields.
fn merged(live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let mut target = live.clone();
            for (key, value) in desired {
                if value.is_null() {
                    target.remove(key);
                } else {
                    let live = live.get(key).unwrap_or(&Value::Null);
                    target.insert(key.clone(), merged(live, value));
                }
            }
            Value::Object(target)
        }
        (Value::Array(live), Value::Array(desired))
            if live.len() == desired.len() && desired.iter().all(Value::is_object) =>
        {
            let items = live.iter().zip(desired);
            Value::Array(items.map(|(live, it)| merged(live, it)).collect())
        }
        _ => without_nulls(desired.clone()),
    }
}

/// The merge patch that makes `target` of a live value.
fn difference(live: &Value, target: &Value) -> Option<Value> {
    if is_same(live, target) {
        return None;
    }
    let (Value::Object(live), Value::Object(target)) = (live, target) else {
        return Some(target.clone());
    };
    let mut patch = Map::new();
    for (key, value) in live {
        if !target.contains_key(key) && !value.is_null() {
            patch.insert(key.clone(), Value::Null);
        }
    }
    for (key, value) in target {
        let live = live.get(key).unwrap_or(&Value::Null);
        if let Some(part) = difference(live, value) {
            patch.insert(key.clone(), part);
        }
    }
    Some(Value::Object(patch))
}

/// Whether two values are equal. Many types do not store empty values.
fn is_same(live: &Value, target: &Value) -> bool {
    match (live, target) {
        (Value::Null, target) => is_unset(target),
        (Value::Object(live), Value::Object(target)) => {
            live.iter()
                .all(|(key, value)| value.is_null() || target.contains_key(key))
                && target
                    .iter()
                    .all(|(key, value)| is_same(live.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(live), Value::Array(target)) => {
            live.len() == target.len()
                && live.iter().zip(target).all(|(live, it)| is_same(live, it))
        }
        _ => live == target,
    }
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // In configuration, an empty object is a choice.
        Value::Object(_) => false,
    }
}

/// Adds fields to a value.
fn merge(value: &mut Value, part: &Value) {
    match (value, part) {
        (_, Value::Null) => {}
        (Value::Object(fields), Value::Object(part)) => {
            for (key, part) in part {
                merge(fields.entry(key.clone()).or_insert(Value::Null), part);
            }
        }
        (value, part) => *value = part.clone(),
    }
}

fn without_nulls(value: Value) -> Value {
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
