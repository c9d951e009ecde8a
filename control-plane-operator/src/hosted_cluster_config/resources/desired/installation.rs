//! Which release the cluster was installed with, and by what.

use serde_json::json;

use super::input::Input;
use super::object::{Desired, Object, config_map};

const NAMESPACE: &str = "openshift-config";
const NAME: &str = "openshift-install";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let live = input.live("v1", "ConfigMap", NAMESPACE, NAME);
    let version = live.and_then(|live| live["data"]["version"].as_str());
    // The first release stays on record after upgrades.
    let version = version.unwrap_or(&input.release.version);
    let data = json!({ "invoker": "hypershift", "version": version });
    desired.add(Object::merge(config_map(NAMESPACE, NAME, data)));
}
