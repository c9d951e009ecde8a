//! Copies of the kubelet configuration of NodePools, for the node tuning operator.

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Key, Object, config_map};

const NAMESPACE: &str = "openshift-config-managed";
const CHAIN: &str = "kubelet configuration";
const LABEL: &str = "hypershift.openshift.io/kubeletconfig-config";
const NODE_POOL: &str = "hypershift.openshift.io/nodePool";
const MIRRORED: &str = "hypershift.openshift.io/mirrored-config";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let sources = input.sources.of_kind("", "ConfigMap");
    let sources: Vec<_> = sources
        .filter(|(_, it)| label(it, LABEL) == "true")
        .collect();
    for (name, source) in &sources {
        let key = Key::new("v1", "ConfigMap", NAMESPACE, name);
        let is_immutable = |live: &Value| label(live, LABEL) == "true" && live["immutable"] == true;
        let object = if input.guest.get(&key).is_some_and(is_immutable) {
            // It is created again in the next pass.
            Object::delete(&key)
        } else {
            copy(name, source)
        };
        desired.add(object.chained(CHAIN));
    }
    let pools: Vec<_> = sources.iter().map(|(_, it)| label(it, NODE_POOL)).collect();
    for (key, live) in input.guest.iter().filter(|(key, live)| is_copy(key, live)) {
        if sources.iter().all(|(name, _)| *name != key.name) && !is_kept(live, &pools) {
            desired.add(Object::delete(key).chained(CHAIN));
        }
    }
}

fn copy(name: &str, source: &Value) -> Object {
    let mut value = config_map(NAMESPACE, name, source["data"].clone());
    let labels = &mut value["metadata"]["labels"];
    *labels = json!({ LABEL: "true", MIRRORED: "true" });
    let pool = label(source, NODE_POOL);
    if !pool.is_empty() {
        labels[NODE_POOL] = json!(pool);
    }
    Object::merge(value)
}

fn is_copy(key: &Key, live: &Value) -> bool {
    key.kind == "ConfigMap" && key.namespace == NAMESPACE && label(live, LABEL) == "true"
}

/// A source can be missing for a moment. As the node tuning operator would restart nodes, a copy is only deleted with the
/// last source of its NodePool.
fn is_kept(live: &Value, pools: &[&str]) -> bool {
    let pool = label(live, NODE_POOL);
    label(live, MIRRORED) == "true" && (pool.is_empty() || pools.contains(&pool))
}

fn label<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["labels"][key].as_str().unwrap_or("")
}
