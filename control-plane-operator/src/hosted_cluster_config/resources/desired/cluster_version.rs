//! The part of the ClusterVersion that belongs to the HostedCluster. Overrides belong to users.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Object, with_spec};

const API: &str = "config.openshift.io/v1";
pub(super) const NAME: &str = "version";
/// Capabilities that a hosted cluster has by default. Machines and nodes are managed from outside.
const CAPABILITIES: [&str; 16] = [
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

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let spec = json!({
        "clusterID": input.text("/clusterID"),
        "capabilities": {
            "baselineCapabilitySet": "None",
            "additionalEnabledCapabilities": capabilities(input),
        },
        // Null removes a value.
        "upstream": input.spec("/updateService"),
        "channel": input.spec("/channel").filter(|it| *it != ""),
        // The release is chosen by the HostedCluster.
        "desiredUpdate": null,
    });
    desired.add(Object::merge(with_spec(
        API,
        "ClusterVersion",
        "",
        NAME,
        spec,
    )));
}

fn capabilities<'a>(input: &Input<'a>) -> BTreeSet<&'a str> {
    let names = |pointer| input.list(pointer).iter().filter_map(Value::as_str);
    let mut enabled = BTreeSet::from(CAPABILITIES);
    for name in names("/capabilities/disabled") {
        enabled.remove(name);
    }
    enabled.extend(names("/capabilities/enabled"));
    let live = input.live(API, "ClusterVersion", "", NAME);
    let known =
        live.and_then(|live| live["status"]["capabilities"]["knownCapabilities"].as_array());
    if let Some(known) = known.filter(|known| !known.is_empty()) {
        enabled.retain(|name| known.iter().any(|it| it == name));
    }
    enabled
}
