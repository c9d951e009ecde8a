//! The guest's `ClusterVersion`, as it is made first.

use std::collections::BTreeSet;

use control_plane_component::Context;
use serde_json::{Value, json};

/// Parts of OpenShift that can be left out, and are there unless users say so.
const USUAL: [&str; 16] = [
    "Build",
    "CSISnapshot",
    "CloudControllerManager",
    "CloudCredential",
    "Console",
    "DeploymentConfig",
    "ImageRegistry",
    "Ingress",
    "Insights",
    "MachineAPI",
    "NodeTuning",
    "OperatorLifecycleManager",
    "OperatorLifecycleManagerV1",
    "Storage",
    "marketplace",
    "openshift-samples",
];

/// The object.
pub(super) fn wanted(context: &Context<'_>) -> Value {
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

/// The usual ones, with the changes that users ask for.
fn capabilities(context: &Context<'_>) -> BTreeSet<String> {
    let asked = &context.spec().capabilities;
    let mut all: BTreeSet<_> = USUAL.map(str::to_owned).into();
    let name = |capability: &Value| capability.as_str().unwrap_or_default().to_owned();
    all.extend(
        asked
            .enabled
            .iter()
            .map(|capability| name(&json!(capability))),
    );
    for capability in &asked.disabled {
        all.remove(&name(&json!(capability)));
    }
    all
}
