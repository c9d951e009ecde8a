//! Configuration of the cloud provider, which components in the cluster read.

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Object, config_map};

const CONFIG: &str = "cloud.conf";
const CA_BUNDLE: &str = "ca-bundle.pem";
const PROVIDER: (&str, &str) = ("openshift-config", "cloud-provider-config");
const MANAGED: (&str, &str) = ("openshift-config-managed", "kube-cloud-config");

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    match input.platform() {
        "Azure" => desired.attempt(azure(input)),
        "OpenStack" => {
            for place in [PROVIDER, MANAGED] {
                desired.attempt(openstack(input, place));
            }
        }
        _ => {}
    }
}

fn azure(input: &Input<'_>) -> Result<Object, Error> {
    let (namespace, name) = PROVIDER;
    let object = format!("ConfigMap {namespace}/{name}");
    let config = input.config_value(&object, "azure-cloud-config", CONFIG)?;
    Ok(Object::merge(config_map(
        namespace,
        name,
        json!({ "config": config }),
    )))
}

fn openstack(input: &Input<'_>, (namespace, name): (&str, &str)) -> Result<Object, Error> {
    let object = format!("ConfigMap {namespace}/{name}");
    let source = input.source(&object, "ConfigMap", "openstack-cloud-config")?;
    let mut data: Value = json!({ CONFIG: source["data"][CONFIG] });
    let ca = &source["data"][CA_BUNDLE];
    if ca.as_str().is_some_and(|ca| !ca.is_empty()) {
        data[CA_BUNDLE] = ca.clone();
    }
    Ok(Object::merge(config_map(namespace, name, data)))
}
