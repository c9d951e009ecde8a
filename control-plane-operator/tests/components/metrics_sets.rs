//! Which series each monitor of a control plane collects, by metrics set.

use api::hypershift::v1beta1::monitoring::MetricsSet;
use control_plane_operator::components;
use control_plane_operator::render::Input;
use serde_json::{Value, json};

use crate::input;

/// A monitor's endpoint.
struct Row {
    component: &'static str,
    monitor: &'static str,
    endpoint: usize,
    /// The rule of Telemetry; none collects all.
    telemetry: Option<(&'static str, &'static str)>,
    /// The key of the rules of SRE; none collects all.
    sre: Option<&'static str>,
    /// How many rules of All drop series.
    drops: usize,
}

const fn row(
    component: &'static str,
    monitor: &'static str,
    telemetry: Option<(&'static str, &'static str)>,
    sre: Option<&'static str>,
    drops: usize,
) -> Row {
    Row {
        component,
        monitor,
        endpoint: 0,
        telemetry,
        sre,
        drops,
    }
}

const REQUESTS: &str =
    "(apiserver_storage_objects|apiserver_request_total|apiserver_current_inflight_requests)";
const ETCD: &str = "(etcd_disk_wal_fsync_duration_seconds_bucket|etcd_mvcc_db_total_size_in_bytes\
                    |etcd_network_peer_round_trip_time_seconds_bucket|etcd_mvcc_db_total_size_in_use_in_bytes\
                    |etcd_disk_backend_commit_duration_seconds_bucket|etcd_server_leader_changes_seen_total)";
const VERSION: &str = "(cluster_version|cluster_version_available_updates|cluster_operator_up\
                       |cluster_operator_conditions|cluster_version_payload|cluster_installer)";

fn rows() -> Vec<Row> {
    let keep = |regex| Some(("keep", regex));
    let none = Some(("drop", "(.*)"));
    let monitor = |name, telemetry, sre, drops| row(name, name, telemetry, Some(sre), drops);
    vec![
        monitor("kube-apiserver", keep(REQUESTS), "kubeAPIServer", 11),
        monitor(
            "openshift-apiserver",
            keep(REQUESTS),
            "openshiftAPIServer",
            4,
        ),
        monitor("etcd", keep(ETCD), "etcd", 0),
        monitor(
            "kube-controller-manager",
            keep("pv_collector_total_pv_count"),
            "kubeControllerManager",
            3,
        ),
        monitor("kube-scheduler", Some(("drop", ".*")), "kubeScheduler", 0),
        Row {
            endpoint: 1,
            ..monitor(
                "kube-scheduler",
                Some(("drop", ".*")),
                "kubeSchedulerResourceMetrics",
                0,
            )
        },
        monitor(
            "openshift-controller-manager",
            keep("openshift_build_status_phase_total"),
            "openshiftControllerManager",
            1,
        ),
        monitor(
            "openshift-route-controller-manager",
            none,
            "openshiftRouteControllerManager",
            1,
        ),
        monitor("cluster-version-operator", keep(VERSION), "cvo", 1),
        monitor(
            "olm-operator",
            keep("(csv_succeeded|csv_abnormal)"),
            "olm",
            1,
        ),
        monitor(
            "catalog-operator",
            keep("(subscription_sync_total|olm_resolution_duration_seconds)"),
            "catalogOperator",
            1,
        ),
        row(
            "cluster-node-tuning-operator",
            "node-tuning-operator",
            keep("nto_profile_calculated_total"),
            Some("nodeTuningOperator"),
            0,
        ),
        monitor(
            "cluster-image-registry-operator",
            none,
            "registryOperator",
            0,
        ),
        monitor("ingress-operator", none, "registryOperator", 0),
        row(
            "hosted-cluster-config-operator",
            "hosted-cluster-config-operator",
            None,
            None,
            0,
        ),
        row("ignition-server", "ignition-server", None, None, 0),
        row("cluster-autoscaler", "cluster-autoscaler", None, None, 0),
    ]
}

/// The endpoints of all monitors: component, name of the monitor, index, relabel rules.
fn endpoints(input: &Input) -> Vec<(&'static str, String, usize, Vec<Value>)> {
    let mut found = Vec::new();
    for component in components::all() {
        // Components that the input does not have render nothing.
        for file in input.component(component).unwrap_or_default() {
            let list = match file.object["kind"].as_str() {
                Some("ServiceMonitor") => "endpoints",
                Some("PodMonitor") => "podMetricsEndpoints",
                _ => continue,
            };
            let name = file.object["metadata"]["name"].as_str().unwrap().to_owned();
            let endpoints = file.object["spec"][list].as_array().unwrap();
            for (index, endpoint) in endpoints.iter().enumerate() {
                let rules = endpoint["metricRelabelings"].as_array().cloned();
                found.push((
                    component.name,
                    name.clone(),
                    index,
                    rules.unwrap_or_default(),
                ));
            }
        }
    }
    found
}

/// Rules that keep or drop series.
fn selecting(rules: &[Value]) -> Vec<&Value> {
    let selects = |rule: &&Value| rule["action"] == "keep" || rule["action"] == "drop";
    rules.iter().filter(selects).collect()
}

fn base(set: MetricsSet) -> Input {
    let mut input = input::base();
    input.settings.metrics_set = Some(set);
    input
}

#[test]
pub(crate) fn each_monitor_follows_the_metrics_set() {
    let rows = rows();
    let keys = rows.iter().filter_map(|row| row.sre);
    let config: Vec<_> = keys
        .map(|key| format!("{key}:\n- {{ action: keep, regex: {key} }}\n"))
        .collect();
    let config = config.concat();
    let mut sre = base(MetricsSet::Sre);
    // Two monitors share a key.
    let config = config.replacen(
        "registryOperator:\n- { action: keep, regex: registryOperator }\n",
        "",
        1,
    );
    sre.objects.insert(json!({
        "kind": "ConfigMap", "metadata": { "name": "sre-metric-set" }, "data": { "config": config },
    }));
    let find = |all: &[(&str, String, usize, Vec<Value>)], row: &Row| {
        let mut all = all.iter();
        let found = all.find(|(component, monitor, endpoint, _)| {
            (*component, monitor.as_str(), *endpoint) == (row.component, row.monitor, row.endpoint)
        });
        found
            .unwrap_or_else(|| panic!("{}: no such endpoint", row.monitor))
            .3
            .clone()
    };
    let rendered = [
        endpoints(&base(MetricsSet::Telemetry)),
        endpoints(&sre),
        endpoints(&base(MetricsSet::All)),
        endpoints(&base(MetricsSet::Sre)),
    ];
    for row in &rows {
        let name = format!("{} {}", row.monitor, row.endpoint);
        let [telemetry, sre, all, unset] = rendered.each_ref().map(|all| find(all, row));
        for rules in [&telemetry, &sre, &all, &unset] {
            let last = rules.last().unwrap();
            assert_eq!(
                last["targetLabel"], "_id",
                "{name}: the label is set at the end"
            );
        }
        let expected = row.telemetry.map(|(action, regex)| {
            json!({ "action": action, "regex": regex, "sourceLabels": ["__name__"] })
        });
        assert_eq!(
            selecting(&telemetry).first().copied(),
            expected.as_ref(),
            "{name}"
        );
        assert!(selecting(&telemetry).len() <= 1, "{name}: {telemetry:?}");
        let expected = row.sre.map(|key| json!({ "action": "keep", "regex": key }));
        assert_eq!(
            selecting(&sre).first().copied(),
            expected.as_ref(),
            "{name}"
        );
        assert_eq!(selecting(&all).len(), row.drops, "{name}: {all:?}");
        // Without the ConfigMap, no series is left out.
        assert_eq!(selecting(&unset).len(), 0, "{name}: {unset:?}");
    }
    crate::rows::count(rows.len());
}

/// A monitor without a row here is one whose metrics sets are not known.
#[test]
fn all_monitors_have_a_row() {
    let known = rows();
    for (component, monitor, endpoint, _) in endpoints(&base(MetricsSet::All)) {
        let is_known = known.iter().any(|row| {
            (row.component, row.monitor, row.endpoint) == (component, monitor.as_str(), endpoint)
        });
        // Proxies of Cluster API are ours.
        let is_proxy = monitor.ends_with("proxy") || monitor.ends_with("capi-proxy");
        assert!(is_known || is_proxy, "{component}: {monitor} {endpoint}");
    }
}
