//! The initial `ClusterVersion` of the guest.

use std::collections::BTreeSet;

use control_plane_component::Context;
use serde_json::{Value, json};

/// Optional capabilities that are enabled by default.
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
    let mut all: BTreeSet<_> = USUAL.map(str::to_owned).into();
    let name = |capability: &Value| capability.as_str().unwrap_or_default().to_owned();
    all.extend(
        requested
            .enabled
            .iter()
            .map(|capability| name(&json!(capability))),
    );
    for capability in &requested.disabled {
        all.remove(&name(&json!(capability)));
    }
    all
}
