//! The part of the ClusterVersion that belongs to the HostedCluster. Overrides belong to users.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::input::Input;
use super::object::{Desired, Object, with_spec};
use crate::capabilities::with_changes;

const API: &str = "config.openshift.io/v1";
pub(super) const NAME: &str = "version";
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
    let disabled = names("/capabilities/disabled");
    let mut enabled = with_changes(names("/capabilities/enabled"), disabled);
    let live = input.live(API, "ClusterVersion", "", NAME);
    let known =
        live.and_then(|live| live["status"]["capabilities"]["knownCapabilities"].as_array());
    if let Some(known) = known.filter(|known| !known.is_empty()) {
        enabled.retain(|name| known.iter().any(|it| it == name));
    }
    enabled
}
