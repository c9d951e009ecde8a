//! The image registry and its CA bundle.

use serde_json::{Value, json};

use super::admission_policies;
use super::global_config::managed;
use super::input::Input;
use super::object::{Desired, Object, config_map, with_spec};
use crate::hex;

const API: &str = "imageregistry.operator.openshift.io/v1";
const NAME: &str = "cluster";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if input.has_capability("ImageRegistry") {
        let live = input.live(API, "Config", "", NAME);
        // On OpenStack the registry's operator creates it, after a volume.
        if live.is_some() || !input.is_on(&["OpenStack"]) {
            desired.add(config(input, live));
        }
        if input.is_on(&["Azure"]) {
            desired.extend(admission_policies::registry());
        }
    }
    trusted_ca(input, desired);
}

fn config(input: &Input<'_>, live: Option<&Value>) -> Object {
    let spec = live.map_or(&Value::Null, |live| &live["spec"]);
    let mut wanted = json!({ "managementState": managed(live) });
    if spec["httpSecret"].as_str().is_none_or(str::is_empty) {
        wanted["httpSecret"] = json!(hex::encode(&input.random[..64]));
    }
    let is_unusable = spec["storage"]["ibmcos"] == json!({});
    let replicas = if input.has_redundant_infrastructure() {
        2
    } else {
        1
    };
    let mut initial = json!({ "replicas": replicas });
    if input.is_on(&["KubeVirt", "None"]) {
        initial["storage"] = json!({ "emptyDir": {} });
    }
    if input.is_on(&["IBMCloud"]) {
        let removed = json!({
            "managementState": "Removed",
            "replicas": 1,
            "storage": { "emptyDir": {}, "ibmcos": null },
        });
        if is_unusable {
            // The operator cannot repair this by itself.
            wanted = removed;
        } else {
            initial = removed;
        }
    }
    let finalizers = json!(["imageregistry.operator.openshift.io/finalizer"]);
    Object::merge(with_spec(API, "Config", "", NAME, wanted))
        .initially(json!({ "metadata": { "finalizers": finalizers }, "spec": initial }))
}

fn trusted_ca(input: &Input<'_>, desired: &mut Desired) {
    let namespace = "openshift-config";
    let name = input.text("/configuration/image/additionalTrustedCA/name");
    if !name.is_empty() {
        let object = format!("ConfigMap {namespace}/{name}");
        let source = input.source(&object, "ConfigMap", name);
        desired
            .attempt(source.map(|source| {
                Object::enforce(config_map(namespace, name, source["data"].clone()))
            }));
    }
}
