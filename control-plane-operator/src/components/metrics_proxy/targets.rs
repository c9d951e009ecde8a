//! What the metrics proxy scrapes: the first endpoint of each monitor of the control plane. A monitor whose port is
//! unknown is skipped: it belongs to a component that is not written yet.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{PodSpec, Volume, VolumeMount};
use serde_json::{Map, Value, json};

use super::edit;

/// Directory of certificates, by the name of their object.
pub(super) const CERTIFICATES: &str = "/etc/metrics-proxy/certs";
/// The longest name of a volume.
const LONGEST_VOLUME: usize = 63;
/// Annotations of monitors, and the fields of the configuration that they set: labels of the metrics in the guest.
const LABELS: [(&str, &str); 4] = [
    ("hypershift.openshift.io/metrics-job", "metricsJob"),
    (
        "hypershift.openshift.io/metrics-namespace",
        "metricsNamespace",
    ),
    ("hypershift.openshift.io/metrics-service", "metricsService"),
    (
        "hypershift.openshift.io/metrics-endpoint",
        "metricsEndpoint",
    ),
];

/// What is scraped of one component.
#[derive(Debug, PartialEq)]
pub(super) struct Target {
    /// Its entry in the configuration.
    pub(super) config: Value,
    /// Files that the scrape needs.
    pub(super) files: Vec<File>,
}

/// A value of a Secret or of a `ConfigMap`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    kind: Kind,
    object: String,
    key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secret,
    ConfigMap,
}

/// The pods of a component, and their port.
struct Pods<'a> {
    selector: &'a Map<String, Value>,
    port: i64,
}

/// All targets, sorted by name.
pub(super) fn all(context: &Context<'_>) -> Vec<Target> {
    let group = context.settings.monitoring.group();
    let services = context.objects.of_kind(group, "ServiceMonitor");
    let services = services.filter_map(|(name, monitor)| {
        let endpoint = &monitor["spec"]["endpoints"][0];
        let pods = of_service(context, name, monitor, endpoint)?;
        Some((name, target(name, monitor, endpoint, &pods)))
    });
    let pods = context.objects.of_kind(group, "PodMonitor");
    let pods = pods.filter_map(|(name, monitor)| {
        let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
        let selector = labels(&monitor["spec"]["selector"]["matchLabels"])?;
        let port = container_port(context, selector, endpoint["port"].as_str()?)?;
        Some((
            name,
            target(name, monitor, endpoint, &Pods { selector, port }),
        ))
    });
    let mut all: Vec<_> = services.chain(pods).collect();
    all.sort_by_key(|(name, _)| *name);
    all.into_iter().map(|(_, target)| target).collect()
}

fn target(name: &str, monitor: &Value, endpoint: &Value, pods: &Pods<'_>) -> Target {
    let text = |value: &Value, default: &str| json!(value.as_str().unwrap_or(default));
    let mut config = json!({
        "name": name,
        "selector": pods.selector,
        "metricsPort": pods.port,
        "metricsPath": text(&endpoint["path"], "/metrics"),
        "metricsScheme": text(&endpoint["scheme"], "http"),
    });
    let tls = &endpoint["tlsConfig"];
    if tls["serverName"].is_string() {
        config["tlsServerName"] = tls["serverName"].clone();
    }
    let mut files = Vec::new();
    for (field, file) in [
        ("caFile", File::read(&tls["ca"])),
        ("certFile", File::read(&tls["cert"])),
        ("keyFile", File::new(Kind::Secret, &tls["keySecret"])),
    ] {
        if let Some(file) = file {
            config[field] = json!(format!("{CERTIFICATES}/{}/{}", file.object, file.key));
            files.push(file);
        }
    }
    for (annotation, field) in LABELS {
        let value = &monitor["metadata"]["annotations"][annotation];
        if value.is_string() {
            config[field] = value.clone();
        }
    }
    Target { config, files }
}

/// The pods behind the Service of a `ServiceMonitor`: the one of the same name, else the first that it selects.
fn of_service<'a>(
    context: &Context<'a>,
    name: &str,
    monitor: &Value,
    endpoint: &Value,
) -> Option<Pods<'a>> {
    let objects = context.objects;
    let selected = || {
        let wanted = labels(&monitor["spec"]["selector"]["matchLabels"])?;
        let mut services = objects.of_kind("", "Service");
        services
            .find(|(_, service)| has_labels(&service["metadata"]["labels"], wanted))
            .map(|(_, service)| service)
    };
    let service = objects.get("", "Service", name).or_else(selected)?;
    let selector = labels(&service["spec"]["selector"])?;
    let port = service_port(context, service, selector, endpoint)?;
    Some(Pods { selector, port })
}

/// The port of the pods: a monitor names the port of the Service, or its target.
fn service_port(
    context: &Context<'_>,
    service: &Value,
    selector: &Map<String, Value>,
    endpoint: &Value,
) -> Option<i64> {
    let target = &endpoint["targetPort"];
    if let Some(number) = target.as_i64() {
        return Some(number);
    }
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    let port = ports.find(|port| {
        let is_named = endpoint["port"].is_string() && port["name"] == endpoint["port"];
        is_named || target.is_string() && port["targetPort"] == *target
    });
    match (port, target.as_str()) {
        (Some(port), _) => {
            let number = &port["targetPort"];
            let named = || container_port(context, selector, number.as_str()?);
            number.as_i64().or_else(named).or(port["port"].as_i64())
        }
        (None, Some(name)) => container_port(context, selector, name),
        (None, None) => None,
    }
}

/// The number of a named port in pods with these labels. The templates of workloads say the same as their pods, and are
/// there before them.
fn container_port(context: &Context<'_>, selector: &Map<String, Value>, name: &str) -> Option<i64> {
    let workloads = ["Deployment", "StatefulSet"].into_iter();
    let workloads = workloads.flat_map(|kind| context.objects.of_kind("apps", kind));
    let templates = workloads.map(|(_, workload)| &workload["spec"]["template"]);
    let pods = templates.filter(|pod| has_labels(&pod["metadata"]["labels"], selector));
    let containers =
        pods.flat_map(|pod| pod["spec"]["containers"].as_array().into_iter().flatten());
    let mut ports = containers.flat_map(|it| it["ports"].as_array().into_iter().flatten());
    ports.find(|port| port["name"] == name)?["containerPort"].as_i64()
}

/// Labels that select something: without any, all pods would be selected.
fn labels(selector: &Value) -> Option<&Map<String, Value>> {
    selector.as_object().filter(|labels| !labels.is_empty())
}

fn has_labels(labels: &Value, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| labels[key] == *value)
}

/// Mounts these files into a container. An object or a key that does not exist yet does not keep the pod from starting.
pub(super) fn mount(
    pod: &mut PodSpec,
    container: &str,
    files: impl Iterator<Item = File>,
) -> Result<()> {
    let mut objects: BTreeMap<String, (Kind, BTreeSet<String>)> = BTreeMap::new();
    for file in files {
        let (kind, keys) = objects
            .entry(file.object)
            .or_insert_with(|| (file.kind, BTreeSet::new()));
        if *kind == file.kind {
            keys.insert(file.key);
        }
    }
    for (object, (kind, keys)) in objects {
        let name = object.replace('.', "-");
        let mut volumes = pod.volumes.iter().flatten();
        if volumes.any(|volume| volume.name == name) {
            continue;
        }
        let volumes = pod.volumes.get_or_insert_default();
        volumes.push(volume(&name, &object, kind, &keys));
        let container = edit::container(pod, container)?;
        let mounts = container.volume_mounts.get_or_insert_default();
        mounts.push(VolumeMount {
            mount_path: format!("{CERTIFICATES}/{object}"),
            name,
            ..VolumeMount::default()
        });
    }
    Ok(())
}

/// A volume with these keys only: a Secret may also hold a key that the proxy does not need.
fn volume(name: &str, object: &str, kind: Kind, keys: &BTreeSet<String>) -> Volume {
    let items: Vec<_> = keys
        .iter()
        .map(|key| json!({ "key": key, "path": key }))
        .collect();
    edit::from_json(match kind {
        Kind::Secret => json!({
            "name": name,
            "secret": { "secretName": object, "optional": true, "items": items },
        }),
        Kind::ConfigMap => json!({
            "name": name,
            "configMap": { "name": object, "optional": true, "items": items },
        }),
    })
}

// === impl File ===

impl File {
    /// Reads a reference to a Secret or to a `ConfigMap`.
    fn read(reference: &Value) -> Option<Self> {
        Self::new(Kind::Secret, &reference["secret"])
            .or_else(|| Self::new(Kind::ConfigMap, &reference["configMap"]))
    }

    fn new(kind: Kind, reference: &Value) -> Option<Self> {
        let object = reference["name"].as_str().filter(|name| is_object(name))?;
        let key = reference["key"].as_str().filter(|key| is_key(key))?;
        Some(Self {
            kind,
            object: object.to_owned(),
            key: key.to_owned(),
        })
    }
}

/// Whether this names an object and, without dots, a volume. Other text could lead out of the directory of certificates.
fn is_object(name: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| known(byte) || b".-".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= LONGEST_VOLUME
        && name.bytes().all(inner)
        && ends.into_iter().all(|end| end.is_some_and(known))
}

/// Whether this can be a key of a Secret, which is the name of a file.
fn is_key(key: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !key.is_empty() && key.bytes().all(known) && !key.starts_with("..") && key != "."
}
