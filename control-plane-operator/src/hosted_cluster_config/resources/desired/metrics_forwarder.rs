//! Forwards metrics of the control plane to Prometheus in the cluster.

use api::annotations::cluster::DISABLE_MONITORING_SERVICES;
use control_plane_component::hash::hash;
use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, config_map, manifest};

const MANIFEST: &str = include_str!("assets/metrics-forwarder.yaml");
const NAMESPACE: &str = "openshift-monitoring";
const NAME: &str = "control-plane-metrics-forwarder";
const CONFIG: &str = "metrics-forwarder-config";
const CONFIG_KEY: &str = "haproxy.cfg";
const CA: &str = "metrics-proxy-serving-ca";
const MONITORING: &str = "monitoring.coreos.com/v1";
const CHECKSUM: &str = "metrics-forwarder-config-checksum";

/// What the control plane publishes.
struct Source {
    host: String,
    ca: String,
    components: Vec<String>,
}

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if !is_enabled(input) {
        desired.extend(keys().iter().map(Object::delete));
        return;
    }
    // Until everything is published, the objects stay as they are.
    if let Some(source) = source(input) {
        forward(input, desired, &source);
    }
}

fn is_enabled(input: &Input<'_>) -> bool {
    input.text("/monitoring/metricsForwarding/mode") == "Forward"
        && input
            .annotation(DISABLE_MONITORING_SERVICES.key())
            .is_none()
}

fn keys() -> [Key; 4] {
    [
        Key::new("apps/v1", "Deployment", NAMESPACE, NAME),
        Key::new("v1", "ConfigMap", NAMESPACE, CONFIG),
        Key::new("v1", "ConfigMap", NAMESPACE, CA),
        Key::new(MONITORING, "PodMonitor", NAMESPACE, NAME),
    ]
}

fn source(input: &Input<'_>) -> Option<Source> {
    let route = input
        .sources
        .get("route.openshift.io", "Route", "metrics-proxy")?;
    let host = route.pointer("/status/ingress/0/host")?.as_str()?;
    let ca = input
        .secret_value(NAME, "metrics-proxy-ca-cert", "tls.crt")
        .ok()?;
    let config = input
        .config_value(NAME, "metrics-proxy-config", "config.yaml")
        .ok()?;
    let config: Value = serde_saphyr::from_str(config).ok()?;
    // None are null.
    let components = config["components"].as_array().into_iter().flatten();
    let components = components.filter_map(|component| component["name"].as_str());
    let mut components: Vec<_> = components.map(str::to_owned).collect();
    components.sort();
    Some(Source {
        host: host.to_owned(),
        ca: String::from_utf8(ca).ok()?,
        components,
    })
}

fn forward(input: &Input<'_>, desired: &mut Desired, source: &Source) {
    let config = haproxy(&source.host);
    let checksum = hash(config.as_bytes());
    let data = json!({ CONFIG_KEY: config });
    desired.add(Object::merge(config_map(NAMESPACE, CONFIG, data)));
    for document in manifest(MANIFEST) {
        desired.attempt(deployment(input, document, &checksum));
    }
    desired.add(Object::merge(config_map(
        NAMESPACE,
        CA,
        json!({ "ca.crt": source.ca }),
    )));
    desired.add(Object::merge(monitor(source)));
}

fn deployment(input: &Input<'_>, mut value: Value, checksum: &str) -> Result<Object, Error> {
    let image = input.image(&format!("Deployment {NAMESPACE}/{NAME}"), "haproxy-router")?;
    let template = &mut value["spec"]["template"];
    template["metadata"]["annotations"][CHECKSUM] = json!(checksum);
    template["spec"]["containers"][0]["image"] = json!(image);
    Ok(Object::enforce(value))
}

fn monitor(source: &Source) -> Value {
    let endpoints = source.components.iter().map(|component| {
        let ca = json!({ "configMap": { "name": CA, "key": "ca.crt" } });
        json!({
            "port": "metrics",
            "path": format!("/metrics/{component}"),
            "scheme": "https",
            "honorLabels": true,
            "tlsConfig": { "serverName": source.host, "ca": ca },
        })
    });
    let spec = json!({
        "selector": { "matchLabels": { "app": NAME } },
        // Monitoring adds the client certificate.
        "scrapeClass": "tls-client-certificate-auth",
        "podMetricsEndpoints": endpoints.collect::<Vec<_>>(),
    });
    super::object::with_spec(MONITORING, "PodMonitor", NAMESPACE, NAME, spec)
}

/// TLS is passed through, so that Prometheus authenticates to the control plane.
pub(crate) fn haproxy(host: &str) -> String {
    format!(
        "global\n  log stdout format raw local0\n\
         defaults\n  log global\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
         frontend metrics\n  bind *:9443\n  default_backend metrics-proxy\n\
         backend metrics-proxy\n  server metrics-proxy {host}:443\n"
    )
}
