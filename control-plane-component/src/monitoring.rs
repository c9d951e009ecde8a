//! Monitors of a control plane for the management cluster's Prometheus: the cluster label of each series, and which
//! series are kept.

use api::hypershift::v1beta1::monitoring::MetricsSet;
use serde_json::{Value, json};

use crate::context::Context;
use crate::declaration::Metrics;

/// The label that identifies a cluster.
const CLUSTER: &str = "_id";
/// The `ConfigMap` with the relabel rules of the SRE metrics set, and its key.
const SRE_METRIC_SET: (&str, &str) = ("sre-metric-set", "config");

/// Adapts a `ServiceMonitor`, a `PodMonitor` or a `PrometheusRule`; leaves other kinds unchanged.
pub(crate) fn adapt(object: &mut Value, context: &Context<'_>, metrics: &Metrics) {
    let id = context.spec().cluster_id.clone().unwrap_or_default();
    let endpoints = match object["kind"].as_str() {
        Some("ServiceMonitor") => "endpoints",
        Some("PodMonitor") => "podMetricsEndpoints",
        Some("PrometheusRule") => return label(object, &id),
        _ => return,
    };
    let filter = filter(context, metrics);
    let list = object["spec"][endpoints].as_array_mut();
    for endpoint in list.into_iter().flatten() {
        if let Some(filter) = &filter {
            keep_only(&mut endpoint["metricRelabelings"], filter);
        }
        for list in ["relabelings", "metricRelabelings"] {
            for rule in endpoint[list].as_array_mut().into_iter().flatten() {
                if rule["targetLabel"] == CLUSTER {
                    rule["replacement"] = json!(id);
                }
            }
        }
    }
}

/// Sets the cluster label on the series of recording rules.
fn label(object: &mut Value, id: &str) {
    let groups = object["spec"]["groups"].as_array_mut();
    for group in groups.into_iter().flatten() {
        for rule in group["rules"].as_array_mut().into_iter().flatten() {
            if let Some(label) = rule.pointer_mut(&format!("/labels/{CLUSTER}")) {
                *label = json!(id);
            }
        }
    }
}

/// Returns the relabel rules of the configured metrics set; `None` keeps those of the manifest.
fn filter(context: &Context<'_>, metrics: &Metrics) -> Option<Vec<Value>> {
    let monitoring = context.spec().monitoring.as_ref();
    let requested = monitoring.and_then(|monitoring| monitoring.metrics_set);
    match requested.or(context.settings.metrics_set)? {
        MetricsSet::All => None,
        MetricsSet::Telemetry => {
            let (action, regex) = metrics.telemetry?;
            Some(vec![json!({
                "action": action, "regex": regex, "sourceLabels": ["__name__"],
            })])
        }
        MetricsSet::Sre => sre_rules(context, metrics.sre?),
    }
}

/// Returns the rules of a component in the SRE metrics set. Invalid YAML is ignored.
fn sre_rules(context: &Context<'_>, name: &str) -> Option<Vec<Value>> {
    let (map, key) = SRE_METRIC_SET;
    let text = context.objects.config_value(map, key)?;
    let sets: Value = serde_saphyr::from_str(&text).ok()?;
    sets[name].as_array().cloned()
}

/// Replaces the rules that keep or drop series; rules that change labels stay.
fn keep_only(rules: &mut Value, filter: &[Value]) {
    let labels = rules.as_array().into_iter().flatten();
    let labels = labels.filter(|rule| rule["action"] != "keep" && rule["action"] != "drop");
    let all: Vec<_> = filter.iter().chain(labels).cloned().collect();
    *rules = json!(all);
}
