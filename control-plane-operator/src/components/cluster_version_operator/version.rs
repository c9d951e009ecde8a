//! The initial `ClusterVersion` of the guest.

use std::collections::BTreeSet;

use control_plane_component::Context;
use serde_json::{Value, json};

use crate::capabilities::with_changes;

/// Returns the object.
pub(super) fn cluster_version(context: &Context<'_>) -> Value {
    let spec = context.spec();
    let mut version = json!({
        "clusterID": spec.cluster_id.as_deref().unwrap_or_default(),
        "capabilities": {
            "baselineCapabilitySet": "None",
            "additionalEnabledCapabilities": capabilities(context),
        },
    });
    for (field, value) in [
        ("channel", &spec.channel),
        ("upstream", &spec.update_service),
    ] {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            version[field] = json!(value);
        }
    }
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "name": "version" },
        "spec": version,
    })
}

/// The default capabilities, with the user's changes.
fn capabilities(context: &Context<'_>) -> BTreeSet<String> {
    let requested = &context.spec().capabilities;
    let [enabled, disabled] = [json!(requested.enabled), json!(requested.disabled)];
    let all = with_changes(names(&enabled), names(&disabled));
    all.into_iter().map(str::to_owned).collect()
}

fn names(list: &Value) -> impl Iterator<Item = &str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str)
}
