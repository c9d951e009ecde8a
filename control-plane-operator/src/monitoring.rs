//! What the management cluster's Prometheus collects of a control plane: which cluster a series is of, and which series
//! are kept.

use api::hypershift::v1beta1::monitoring::MetricsSet;
use serde_json::{Value, json};

use crate::component::Context;

/// The label that tells clusters apart.
const CLUSTER: &str = "_id";
/// The `ConfigMap` with the choice of the people who run control planes, and its key.
const CHOICE: (&str, &str) = ("sre-metric-set", "config");

/// Monitor, action and regular expression of the names that telemetry needs.
const TELEMETRY: [(&str, &str, &str); 5] = [
    (
        "cluster-version-operator",
        "keep",
        "(cluster_version|cluster_version_available_updates|cluster_operator_up|cluster_operator_conditions\
         |cluster_version_payload|cluster_installer)",
    ),
    (
        "etcd",
        "keep",
        "(etcd_disk_wal_fsync_duration_seconds_bucket|etcd_mvcc_db_total_size_in_bytes\
         |etcd_network_peer_round_trip_time_seconds_bucket|etcd_mvcc_db_total_size_in_use_in_bytes\
         |etcd_disk_backend_commit_duration_seconds_bucket|etcd_server_leader_changes_seen_total)",
    ),
    (
        "kube-apiserver",
        "keep",
        "(apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests)",
    ),
    (
        "kube-controller-manager",
        "keep",
        "pv_collector_total_pv_count",
    ),
    ("cluster-image-registry-operator", "drop", "(.*)"),
];

/// Monitor, and its name in the choice.
const CHOSEN: [(&str, &str); 4] = [
    ("cluster-version-operator", "cvo"),
    ("etcd", "etcd"),
    ("kube-apiserver", "kubeAPIServer"),
    ("kube-controller-manager", "kubeControllerManager"),
];

/// Adapts a `ServiceMonitor`, a `PodMonitor` or a `PrometheusRule`, and nothing else.
pub(crate) fn adapt(object: &mut Value, context: &Context<'_>) {
    let id = context.spec().cluster_id.clone().unwrap_or_default();
    let endpoints = match object["kind"].as_str() {
        Some("ServiceMonitor") => "endpoints",
        Some("PodMonitor") => "podMetricsEndpoints",
        Some("PrometheusRule") => return label(object, &id),
        _ => return,
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let filter = filter(context, name);
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

/// Says which cluster the series are of that recording rules make.
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

/// The rules in place of the manifest's, which leave out what nobody looks at. `None` keeps those.
fn filter(context: &Context<'_>, name: &str) -> Option<Vec<Value>> {
    let monitoring = context.spec().monitoring.as_ref();
    let wish = monitoring.and_then(|monitoring| monitoring.metrics_set);
    match wish.or(context.settings.metrics_set)? {
        MetricsSet::All => None,
        MetricsSet::Telemetry => {
            let (_, action, regex) = TELEMETRY.iter().find(|(monitor, ..)| *monitor == name)?;
            Some(vec![json!({
                "action": action, "regex": regex, "sourceLabels": ["__name__"],
            })])
        }
        MetricsSet::Sre => chosen(context, name),
    }
}

/// The rules that the choice has for a monitor. A choice that cannot be read chooses nothing.
fn chosen(context: &Context<'_>, name: &str) -> Option<Vec<Value>> {
    let (map, key) = CHOICE;
    let text = context.objects.config_value(map, key)?;
    let choice: Value = serde_saphyr::from_str(&text).ok()?;
    let (_, field) = CHOSEN.iter().find(|(monitor, _)| *monitor == name)?;
    choice[field].as_array().cloned()
}

/// Rules that change labels stay; of those that keep and drop there are these.
fn keep_only(rules: &mut Value, filter: &[Value]) {
    let labels = rules.as_array().into_iter().flatten();
    let labels = labels.filter(|rule| rule["action"] != "keep" && rule["action"] != "drop");
    let all: Vec<_> = filter.iter().chain(labels).cloned().collect();
    *rules = json!(all);
}
