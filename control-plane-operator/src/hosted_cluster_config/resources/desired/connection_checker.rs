//! Pods that report whether they reach the API server through the Service `kubernetes`.

use api::group::DRAIN;
use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, bare, manifest, service_account};

const MANIFEST: &str = include_str!("assets/kas-connection-checker.yaml");
const NAMESPACE: &str = "kube-system";
const NAME: &str = "kas-connection-checker";
/// ConfigMap in which the pods report. Its data belongs to them.
const REPORT: &str = "control-plane-connectivity-check";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let image = match input.image(&format!("Deployment {NAMESPACE}/{NAME}"), "cli") {
        Ok(image) => image,
        Err(error) => return desired.errors.push(error),
    };
    desired.add(Object::create(service_account(NAMESPACE, NAME)));
    let report = bare(&Key::new("v1", "ConfigMap", NAMESPACE, REPORT));
    desired.add(Object::create(report));
    for document in manifest(MANIFEST) {
        desired.attempt(deployment(input, document, &image));
    }
}

fn deployment(input: &Input<'_>, mut value: Value, image: &str) -> Result<Object, Error> {
    // The pods tolerate cordoned nodes. If a drain evicted them, they would return, and it would not end.
    value["spec"]["template"]["metadata"]["labels"][DRAIN] = json!("skip");
    let container = &mut value["spec"]["template"]["spec"]["containers"][0];
    container["image"] = json!(image);
    // The load balancer of IBM Cloud only lets health checks pass.
    let path = if input.is_on(&["IBMCloud"]) {
        "/livez?exclude=etcd&exclude=log"
    } else {
        "/version"
    };
    let script = container["command"][2].as_str();
    let script = script.ok_or_else(|| Error::invalid(NAME, "the manifest has no script"))?;
    container["command"][2] = json!(script.replace("<path>", path));
    Ok(Object::merge(value))
}
