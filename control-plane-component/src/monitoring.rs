//! Monitors of a control plane for the management cluster's Prometheus: the cluster label of each series, and which
//! series are kept.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::monitoring::MetricsSet;
use serde_json::{Value, json};

use crate::context::Context;
use crate::declaration::Metrics;
use crate::error::{Error, Result};

/// The label that identifies a cluster.
const CLUSTER: &str = "_id";
/// The `ConfigMap` with the relabel rules of the SRE metrics set, and its key.
const SRE_METRIC_SET: (&str, &str) = ("sre-metric-set", "config");
/// The path of metrics about the resources of pods, and the end of the key of their rules.
const RESOURCES: &str = "/metrics/resources";
const RESOURCE_METRICS: &str = "ResourceMetrics";

/// Sets the API group of monitors and rules; leaves other objects unchanged.
pub(crate) fn set_group(object: &mut Value, context: &Context<'_>) {
    if let Value::String(version) = object["apiVersion"].take() {
        object["apiVersion"] = json!(context.settings.monitoring.api_version(version));
    }
}

/// Adapts a `ServiceMonitor`, a `PodMonitor` or a `PrometheusRule`; leaves other kinds unchanged.
pub(crate) fn adapt(object: &mut Value, context: &Context<'_>, metrics: &Metrics) -> Result<()> {
    let id = context.spec().cluster_id.clone().unwrap_or_default();
    let endpoints = match object["kind"].as_str() {
        Some("ServiceMonitor") => "endpoints",
        Some("PodMonitor") => "podMetricsEndpoints",
        Some("PrometheusRule") => {
            label(object, &id);
            return Ok(());
        }
        _ => return Ok(()),
    };
    let list = object["spec"][endpoints].as_array_mut();
    for endpoint in list.into_iter().flatten() {
        let path = endpoint["path"].as_str().unwrap_or_default();
        if let Some(filter) = filter(context, metrics, path)? {
            keep_only(&mut endpoint["metricRelabelings"], &filter);
        }
        for list in ["relabelings", "metricRelabelings"] {
            for rule in endpoint[list].as_array_mut().into_iter().flatten() {
                if rule["targetLabel"] == CLUSTER {
                    rule["replacement"] = json!(id);
                }
            }
        }
    }
    Ok(())
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

/// Returns the relabel rules of the configured metrics set for the metrics at a path; `None` keeps those of the manifest.
fn filter(context: &Context<'_>, metrics: &Metrics, path: &str) -> Result<Option<Vec<Value>>> {
    let monitoring = context.spec().monitoring.as_ref();
    let requested = monitoring.and_then(|monitoring| monitoring.metrics_set);
    match requested.or(context.settings.metrics_set) {
        None | Some(MetricsSet::All) => Ok(None),
        Some(MetricsSet::Telemetry) => Ok(metrics.telemetry.map(|(action, regex)| {
            vec![json!({ "action": action, "regex": regex, "sourceLabels": ["__name__"] })]
        })),
        Some(MetricsSet::Sre) => {
            let Some(key) = metrics.sre else {
                return Ok(None);
            };
            let is_resources = path == RESOURCES;
            let suffix = if is_resources { RESOURCE_METRICS } else { "" };
            sre_rules(context, &format!("{key}{suffix}")).map(Some)
        }
    }
}

/// Returns the rules of a component in the SRE metrics set; without rules, all series are kept.
fn sre_rules(context: &Context<'_>, name: &str) -> Result<Vec<Value>> {
    let (map, key) = SRE_METRIC_SET;
    if context.objects.get("", "ConfigMap", map).is_none() {
        return Ok(Vec::new());
    }
    let object = format!("ConfigMap {map}");
    let text = context.objects.config_value(map, key);
    let text = text.ok_or_else(|| Error::missing(&object, format!("key {key}")))?;
    let sets: Option<BTreeMap<String, Vec<Value>>> =
        serde_saphyr::from_str(&text).map_err(|source| Error::Unreadable {
            object: format!("{object}, key {key}"),
            expected: "a YAML list of relabel rules for each component",
            source: Box::new(source),
        })?;
    Ok(sets.unwrap_or_default().remove(name).unwrap_or_default())
}

/// Replaces the rules that keep or drop series; rules that change labels stay.
fn keep_only(rules: &mut Value, filter: &[Value]) {
    let labels = rules.as_array().into_iter().flatten();
    let labels = labels.filter(|rule| rule["action"] != "keep" && rule["action"] != "drop");
    let all: Vec<_> = filter.iter().chain(labels).cloned().collect();
    *rules = json!(all);
}
