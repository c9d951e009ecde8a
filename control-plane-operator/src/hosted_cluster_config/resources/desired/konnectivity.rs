//! The konnectivity agent on each node: the API server reaches kubelets and pods through it.

use api::annotations::cluster::RESTART_DATE;
use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::namespaces::PRIVILEGED;
use super::object::{Desired, Object, config_map, manifest, namespace, service_account};

const MANIFEST: &str = include_str!("assets/konnectivity-agent.yaml");
const NAMESPACE: &str = "kube-system";
const AGENT: &str = "konnectivity-agent";
const CA: &str = "konnectivity-ca-bundle";
const CHAIN: &str = "konnectivity agent";
const IMAGE: &str = "hypershift.openshift.io/konnectivity-agent-image";
const RELEASE_IMAGE: &str = "hypershift.openshift.io/release-image";
/// Names of the image in releases, the newer one first.
const IMAGES: [&str; 2] = ["apiserver-network-proxy", "konnectivity-agent"];
const LOOPBACK: &str = "127.0.0.1";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let mut labels = PRIVILEGED.to_vec();
    labels.push(("security.openshift.io/scc.podSecurityLabelSync", "false"));
    desired.add(Object::merge(namespace(NAMESPACE, &labels)).chained(CHAIN));
    desired.attempt(copy(input, "ConfigMap", CA));
    desired.attempt(copy(input, "Secret", AGENT));
    desired.add(Object::create(service_account(NAMESPACE, AGENT)).chained(CHAIN));
    for document in manifest(MANIFEST) {
        desired.attempt(daemon_set(input, document));
    }
}

fn copy(input: &Input<'_>, kind: &str, name: &str) -> Result<Object, Error> {
    let object = format!("{kind} {NAMESPACE}/{name}");
    let data = input.source(&object, kind, name)?["data"].clone();
    let mut value = config_map(NAMESPACE, name, data);
    value["kind"] = json!(kind);
    Ok(Object::enforce(value).chained(CHAIN))
}

fn daemon_set(input: &Input<'_>, mut value: Value) -> Result<Object, Error> {
    keep_selector(input, &mut value);
    let template = &mut value["spec"]["template"];
    let annotations = &mut template["metadata"]["annotations"];
    annotations[RELEASE_IMAGE] = json!(input.text("/releaseImage"));
    if let Some(date) = input.annotation(RESTART_DATE.key()) {
        annotations[RESTART_DATE.key()] = json!(date);
    }
    let has_host_network = !input.is_on(&["IBMCloud"]);
    let pod = &mut template["spec"];
    pod["hostNetwork"] = json!(has_host_network);
    let is_user_provided = input.text("/platform/ibmcloud/providerType") == "UPI";
    pod["dnsPolicy"] = json!(if is_user_provided {
        "ClusterFirst"
    } else {
        "Default"
    });
    let container = &mut pod["containers"][0];
    container["image"] = json!(image(input)?);
    let (host, port) = &input.settings.konnectivity;
    let health_host = if has_host_network {
        LOOPBACK
    } else {
        "0.0.0.0"
    };
    if let Some(args) = container["args"].as_array_mut() {
        args.push(json!(format!("--proxy-server-host={host}")));
        args.push(json!(format!("--proxy-server-port={port}")));
        args.push(json!(format!("--health-server-host={health_host}")));
    }
    if has_host_network {
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            container[probe]["httpGet"]["host"] = json!(LOOPBACK);
        }
    }
    let proxy = input
        .live_config("Proxy")
        .map_or(&Value::Null, |it| &it["status"]);
    let variable = |name: &str, field: &str| {
        let value = proxy[field].as_str().unwrap_or("");
        json!({ "name": name, "value": value })
    };
    container["env"] = json!([
        variable("HTTP_PROXY", "httpProxy"),
        variable("HTTPS_PROXY", "httpsProxy"),
        variable("NO_PROXY", "noProxy"),
    ]);
    Ok(Object::enforce(value).chained(CHAIN))
}

/// The selector is immutable.
fn keep_selector(input: &Input<'_>, value: &mut Value) {
    let live = input.live("apps/v1", "DaemonSet", NAMESPACE, AGENT);
    let labels = live.map(|live| &live["spec"]["selector"]["matchLabels"]);
    if let Some(labels) = labels.filter(|labels| labels.is_object()) {
        value["spec"]["selector"]["matchLabels"] = labels.clone();
        value["spec"]["template"]["metadata"]["labels"] = labels.clone();
    }
}

fn image(input: &Input<'_>) -> Result<String, Error> {
    if let Some(image) = input.annotation(IMAGE) {
        return Ok(image.to_owned());
    }
    let object = format!("DaemonSet {NAMESPACE}/{AGENT}");
    let image = input.image(&object, IMAGES[0]);
    image.or_else(|_| input.image(&object, IMAGES[1]))
}
