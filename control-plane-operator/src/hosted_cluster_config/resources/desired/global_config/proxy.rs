//! The cluster-wide proxy and its CA bundle.

use serde_json::{Value, json};

use super::super::input::Input;
use super::super::object::{Desired, Key, Object, config_map};
use super::copied;

/// Annotation of a Proxy that has its spec from the HostedCluster.
const COPIED: &str = "hypershift.io/hosted-cluster-proxy-config";
const NAMESPACE: &str = "openshift-config";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    trusted_ca(input, desired);
    let live = input.live_config("Proxy").unwrap_or(&Value::Null);
    let mut object = copied(input, "Proxy", "proxy", &json!({}));
    if input.configuration("proxy").is_some() {
        object.value["metadata"]["annotations"] = json!({ COPIED: "true" });
    } else if live["metadata"]["annotations"].get(COPIED).is_some() {
        object.value["metadata"]["annotations"] = json!({ COPIED: null });
        for field in super::fields(&live["spec"]).keys() {
            object.value["spec"][field] = Value::Null;
        }
    }
    desired.add(object);
}

fn trusted_ca(input: &Input<'_>, desired: &mut Desired) {
    let name = name(input);
    let live = input.live_config("Proxy").unwrap_or(&Value::Null);
    let is_copied = live["metadata"]["annotations"].get(COPIED).is_some();
    let old = live["spec"]["trustedCA"]["name"].as_str().unwrap_or("");
    if is_copied && !old.is_empty() && old != name {
        let old = Key::new("v1", "ConfigMap", NAMESPACE, old);
        desired.add(Object::delete(&old));
    }
    if !name.is_empty() {
        let object = format!("ConfigMap {NAMESPACE}/{name}");
        let source = input.source(&object, "ConfigMap", name);
        desired
            .attempt(source.map(|source| {
                Object::enforce(config_map(NAMESPACE, name, source["data"].clone()))
            }));
    }
}

/// Name of the ConfigMap with the CA bundle, in both clusters.
pub(in super::super) fn name<'a>(input: &Input<'a>) -> &'a str {
    input.text("/configuration/proxy/trustedCA/name")
}
