//! Objects for monitoring: where metrics are, when to alert, what to show.

use anyhow::Context;
use serde_json::{Value, json};

use super::args::PlatformMonitoring;
use super::binding;
use super::kind::Kind;
use super::object::Object;
use super::options::Options;
use super::workload::{APP_LABEL, METRICS_PORT_NAME};
use crate::crds::parse;

/// Service account of OpenShift's Prometheus, and its role in the operator's namespace.
const PROMETHEUS: &str = "prometheus-k8s";
/// Where OpenShift's console looks for dashboards.
const CONSOLE_NAMESPACE: &str = "openshift-config-managed";
const DASHBOARD: &str = include_str!("../../../manifests/install/dashboard.json");
/// Of every operator.
const ALERTS: &str = include_str!("../../../manifests/alerts/operator.yaml");
/// Where there are private types: of the proxy, and of the way to them.
const PRIVATE_ALERTS: [&str; 2] = [
    include_str!("../../../manifests/alerts/capi-proxy.yaml"),
    include_str!("../../../manifests/alerts/migration.yaml"),
];

/// The Prometheus operator's objects.
pub(crate) fn objects(options: &Options) -> anyhow::Result<Vec<Object>> {
    let mut objects = vec![service_monitor(options)];
    objects.extend(rules(&options.namespace, ALERTS)?);
    if options.private().is_some() {
        for alerts in PRIVATE_ALERTS {
            objects.extend(rules(&options.namespace, alerts)?);
        }
    }
    Ok(objects)
}

/// The roles by which OpenShift's Prometheus finds pods: those of the operators, or those of control planes, too. It chooses
/// namespaces by their label, and rules of RBAC cannot.
pub(crate) fn prometheus_roles(options: &Options) -> Vec<Object> {
    let namespace = &options.namespace;
    let own = [Kind::Role, Kind::RoleBinding];
    let everywhere = [Kind::ClusterRole, Kind::ClusterRoleBinding];
    // Cluster-wide names carry the namespace, so that two installations do not share a role.
    let cluster_name = format!("{namespace}-{PROMETHEUS}");
    match options.platform_monitoring {
        PlatformMonitoring::None => Vec::new(),
        PlatformMonitoring::OperatorOnly => prometheus_role(namespace, own, PROMETHEUS),
        PlatformMonitoring::All => prometheus_role(namespace, everywhere, &cluster_name),
    }
}

fn prometheus_role(namespace: &str, [role, binding]: [Kind; 2], name: &str) -> Vec<Object> {
    let rules = json!([{
        "apiGroups": [""],
        "resources": ["services", "endpoints", "pods"],
        "verbs": ["get", "list", "watch"],
    }]);
    let prometheus = binding::service_account("openshift-monitoring", PROMETHEUS);
    let bound = binding::fields(role, name, &[prometheus]);
    vec![
        Object::new(role, namespace, name, json!({ "rules": rules })),
        Object::new(binding, namespace, name, bound),
    ]
}

/// The dashboard, for OpenShift's console.
pub(crate) fn dashboard() -> Object {
    let fields = json!({ "data": { "hypershift-operator.json": DASHBOARD } });
    Object::new(
        Kind::ConfigMap,
        CONSOLE_NAMESPACE,
        "hypershift-operator-dashboard",
        fields,
    )
    .label("console.openshift.io/dashboard", "true")
}

fn service_monitor(options: &Options) -> Object {
    let fields = json!({
        "spec": {
            "selector": { "matchLabels": { APP_LABEL: "hypershift-operator" } },
            "endpoints": [{ "port": METRICS_PORT_NAME, "interval": "30s" }],
        },
    });
    Object::new(Kind::ServiceMonitor, &options.namespace, "operator", fields)
}

/// Alerts, as they are written in a file.
pub(crate) fn rules(namespace: &str, text: &str) -> anyhow::Result<Vec<Object>> {
    let documents = parse("the alerts", text).context("the alerts of this binary are damaged")?;
    let object = |rule: &Value| {
        let name = rule["metadata"]["name"].as_str().unwrap_or("hypershift");
        let fields = json!({ "spec": rule["spec"] });
        Object::new(Kind::PrometheusRule, namespace, name, fields)
    };
    Ok(documents
        .iter()
        .map(|document| object(&document.value))
        .collect())
}
