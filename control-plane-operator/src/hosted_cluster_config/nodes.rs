//! Propagates a pool's labels and taints from Machines to Nodes.

use std::collections::{BTreeMap, BTreeSet};

use api::annotations::node_pool::{NODE_POOL, TAINTS};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use support::reconcile::{is_conflict, is_missing};

use super::context::Context;
use super::error::Error;
use super::machines::{self, Machine};

/// Prefix of Machine labels that are propagated to the Node.
const MANAGED: &str = "managed.hypershift.openshift.io.";
/// Role label of every node of a pool.
const WORKER: &str = "node-role.kubernetes.io/worker";
/// Node annotation: keys of the propagated labels, so that dropped labels can be removed.
const LABELS_SET: &str = "hypershift.openshift.io/managed-node-labels";
/// Node annotation: the propagated taints, as JSON.
const TAINTS_SET: &str = "hypershift.openshift.io/managed-node-taints";
/// Field manager.
const MANAGER: &str = "hosted-cluster-config-operator";

/// Reconciles labels and taints of each Node that has a Machine.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    let machines = ctx.machines().await?;
    let api: Api<Node> = Api::all(ctx.guest.clone());
    for node in ctx.nodes().await? {
        let Some(machine) = machines::of_node(&machines, &node) else {
            continue;
        };
        let Some(change) = change(&node, machine)? else {
            continue;
        };
        write(&api, &node.name_any(), &change).await?;
    }
    Ok(())
}

async fn write(api: &Api<Node>, name: &str, change: &Value) -> Result<(), Error> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(name, &params, &Patch::Merge(change)).await {
        Ok(_) => {
            tracing::info!(node = name, "Updated labels and taints");
            Ok(())
        }
        // The next watch event triggers another reconcile.
        Err(error) if is_conflict(&error) || is_missing(&error) => Ok(()),
        Err(error) => Err(Error::client(format!("label Node {name}"))(error)),
    }
}

/// Returns the patch for a Node, if any, with a resource version precondition.
fn change(node: &Node, machine: &Machine) -> Result<Option<Value>, Error> {
    let labels = label_change(node, &desired_labels(machine));
    let taints = taint_change(node, machine)?;
    if labels.is_none() && taints.is_none() {
        return Ok(None);
    }
    let mut change = json!({ "metadata": { "resourceVersion": node.metadata.resource_version } });
    let mut annotations = json!({});
    if let Some((labels, keys)) = labels {
        change["metadata"]["labels"] = labels;
        annotations[LABELS_SET] = keys;
    }
    if let Some((taints, set)) = taints {
        change["spec"] = json!({ "taints": taints });
        annotations[TAINTS_SET] = set;
    }
    change["metadata"]["annotations"] = annotations;
    Ok(Some(change))
}

fn desired_labels(machine: &Machine) -> BTreeMap<String, String> {
    let managed = machine.labels.iter().filter_map(|(key, value)| {
        let key = key.strip_prefix(MANAGED)?;
        Some((key.to_owned(), value.clone()))
    });
    let pool = machine.annotations.get(NODE_POOL.key());
    let pool = pool.and_then(|reference| reference.rsplit('/').next());
    let pool = pool.map(|name| (NODE_POOL.key().to_owned(), name.to_owned()));
    let worker = [(WORKER.to_owned(), String::new())];
    managed.chain(pool).chain(worker).collect()
}

/// Returns the patch of labels, and the keys of the propagated labels.
fn label_change(node: &Node, desired: &BTreeMap<String, String>) -> Option<(Value, Value)> {
    let keys = desired.keys().cloned().collect::<Vec<_>>().join(",");
    let before = node
        .annotations()
        .get(LABELS_SET)
        .cloned()
        .unwrap_or_default();
    let differs = desired
        .iter()
        .any(|(key, value)| node.labels().get(key) != Some(value));
    if !differs && before == keys {
        return None;
    }
    let dropped: BTreeSet<_> = before
        .split(',')
        .filter(|key| !key.is_empty() && !desired.contains_key(*key))
        .collect();
    let mut labels = json!(desired);
    for key in dropped {
        labels[key] = Value::Null;
    }
    Some((labels, json!(keys)))
}

/// Returns all taints after the change, and the propagated ones. Other taints stay.
fn taint_change(node: &Node, machine: &Machine) -> Result<Option<(Value, Value)>, Error> {
    let desired = match machine.annotations.get(TAINTS.key()) {
        None => Vec::new(),
        Some(text) => read_taints(text).ok_or_else(|| Error::Form {
            object: format!("annotation {} of Machine {}", TAINTS.key(), machine.name),
            problem: "not a list of taints".to_owned(),
        })?,
    };
    let set = node.annotations().get(TAINTS_SET);
    let before = set.and_then(|text| read_taints(text)).unwrap_or_default();
    let spec = serde_json::to_value(node.spec.as_ref().and_then(|spec| spec.taints.as_ref()));
    let live = spec
        .ok()
        .and_then(|value| value.as_array().cloned())
        .unwrap_or_default();
    let ours = |taint: &Value| {
        [&desired, &before]
            .iter()
            .any(|list| list.iter().any(|it| same(it, taint)))
    };
    let mut all: Vec<_> = live.iter().filter(|taint| !ours(taint)).cloned().collect();
    all.extend(desired.iter().cloned());
    let is_settled =
        desired.iter().all(|it| live.contains(it)) && all.len() == live.len() && before == desired;
    if is_settled {
        return Ok(None);
    }
    let set = Value::from(desired).to_string();
    Ok(Some((Value::from(all), json!(set))))
}

fn read_taints(text: &str) -> Option<Vec<Value>> {
    let taints: Vec<Value> = serde_json::from_str(text).ok()?;
    let valid = |taint: &Value| taint["key"].is_string() && taint["effect"].is_string();
    taints.iter().all(valid).then_some(taints)
}

/// Taints are unique by key and effect.
fn same(a: &Value, b: &Value) -> bool {
    a["key"] == b["key"] && a["effect"] == b["effect"]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(labels: &[(&str, &str)], taints: &str) -> Machine {
        Machine {
            name: "m".to_owned(),
            labels: labels
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            annotations: [
                (NODE_POOL.key(), "clusters/workers"),
                (TAINTS.key(), taints),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
            ..Machine::default()
        }
    }

    fn node(object: Value) -> Node {
        serde_json::from_value(object).unwrap()
    }

    /// Applies a merge patch to the node.
    fn changed(node: &Node, change: &Value) -> Node {
        let mut value = serde_json::to_value(node).unwrap();
        json_merge(&mut value, change);
        serde_json::from_value(value).unwrap()
    }

    fn json_merge(base: &mut Value, change: &Value) {
        let Some(fields) = change.as_object() else {
            *base = change.clone();
            return;
        };
        if !base.is_object() {
            *base = json!({});
        }
        for (key, value) in fields {
            if value.is_null() {
                base.as_object_mut().unwrap().remove(key);
            } else {
                json_merge(&mut base[key], value);
            }
        }
    }

    const GPU: &str = r#"[{"key":"gpu","value":"yes","effect":"NoSchedule"}]"#;

    #[test]
    fn node_changes_are_idempotent() {
        let fresh = node(json!({
            "metadata": { "name": "n", "resourceVersion": "5", "labels": { "own": "1" } },
            "spec": { "taints": [{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }] },
        }));
        let machine = machine(
            &[
                ("managed.hypershift.openshift.io.zone", "a"),
                ("other", "x"),
            ],
            GPU,
        );
        let first = change(&fresh, &machine).unwrap().unwrap();
        assert_eq!(first["metadata"]["resourceVersion"], "5");
        let after = changed(&fresh, &first);
        let labels = after.labels();
        assert_eq!(
            (
                labels["zone"].as_str(),
                labels["own"].as_str(),
                labels.get("other")
            ),
            ("a", "1", None)
        );
        assert_eq!(labels["hypershift.openshift.io/nodePool"], "workers");
        assert_eq!(labels[WORKER], "");
        assert_eq!(
            after.spec.as_ref().unwrap().taints.as_ref().unwrap().len(),
            2
        );
        assert_eq!(change(&after, &machine).unwrap(), None);
    }

    #[test]
    fn only_dropped_labels_and_taints_are_removed() {
        let fresh = node(json!({ "metadata": { "name": "n", "labels": { "own": "1" } } }));
        let with = machine(&[("managed.hypershift.openshift.io.zone", "a")], GPU);
        let labelled = changed(&fresh, &change(&fresh, &with).unwrap().unwrap());
        let without = machine(&[], "[]");
        let after = changed(&labelled, &change(&labelled, &without).unwrap().unwrap());
        assert_eq!(after.labels().get("zone"), None);
        assert_eq!(after.labels()["own"], "1");
        assert_eq!(
            after.spec.as_ref().unwrap().taints.as_ref().unwrap().len(),
            0
        );
        assert_eq!(change(&after, &without).unwrap(), None);
    }

    #[test]
    fn changed_taints_are_replaced() {
        let fresh = node(json!({ "metadata": { "name": "n" } }));
        let tainted = changed(
            &fresh,
            &change(&fresh, &machine(&[], GPU)).unwrap().unwrap(),
        );
        let other = GPU.replace("yes", "no");
        let after = changed(
            &tainted,
            &change(&tainted, &machine(&[], &other)).unwrap().unwrap(),
        );
        let taints = after.spec.unwrap().taints.unwrap();
        assert_eq!((taints.len(), taints[0].value.as_deref()), (1, Some("no")));
    }

    #[test]
    fn invalid_taint_annotations_are_errors() {
        let fresh = node(json!({ "metadata": { "name": "n" } }));
        for text in ["", "{}", r#"[{"key":"a"}]"#] {
            assert!(change(&fresh, &machine(&[], text)).is_err(), "{text}");
        }
    }
}
