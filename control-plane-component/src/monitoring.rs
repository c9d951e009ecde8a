//! What the management cluster's Prometheus collects of a control plane: which cluster a series is of, and which series
//! are kept.

use api::hypershift::v1beta1::monitoring::MetricsSet;
use serde_json::{Value, json};

use crate::context::Context;
use crate::declaration::Metrics;

/// The label that identifies a cluster.
const CLUSTER: &str = "_id";
/// The `ConfigMap` with the rules that SREs choose, and its key.
const CHOICE: (&str, &str) = ("sre-metric-set", "config");

/// Adapts a `ServiceMonitor`, a `PodMonitor` or a `PrometheusRule`, and nothing else.
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

/// Sets the label of the cluster on the series of recording rules.
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

/// The rules in place of the manifest's, for the chosen metrics set. `None` keeps those.
fn filter(context: &Context<'_>, metrics: &Metrics) -> Option<Vec<Value>> {
    let monitoring = context.spec().monitoring.as_ref();
    let wish = monitoring.and_then(|monitoring| monitoring.metrics_set);
    match wish.or(context.settings.metrics_set)? {
        MetricsSet::All => None,
        MetricsSet::Telemetry => {
            let (action, regex) = metrics.telemetry?;
            Some(vec![json!({
                "action": action, "regex": regex, "sourceLabels": ["__name__"],
            })])
        }
        MetricsSet::Sre => chosen(context, metrics.sre?),
    }
}

/// The rules that the choice has under a name. A choice that cannot be read chooses nothing.
fn chosen(context: &Context<'_>, name: &str) -> Option<Vec<Value>> {
    let (map, key) = CHOICE;
    let text = context.objects.config_value(map, key)?;
    let choice: Value = serde_saphyr::from_str(&text).ok()?;
    choice[name].as_array().cloned()
}

/// Rules that change labels stay; of those that keep and drop there are these.
fn keep_only(rules: &mut Value, filter: &[Value]) {
    let labels = rules.as_array().into_iter().flatten();
    let labels = labels.filter(|rule| rule["action"] != "keep" && rule["action"] != "drop");
    let all: Vec<_> = filter.iter().chain(labels).cloned().collect();
    *rules = json!(all);
}
