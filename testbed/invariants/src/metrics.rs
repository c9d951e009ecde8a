//! Metrics of the operator about a cluster: there while it is, and gone with it.

use crate::{Finding, Invariant, Observed, text};

/// Metrics of each cluster.
const OF_CLUSTERS: [&str; 3] = [
    "hypershift_cluster_limited_support_enabled",
    "hypershift_cluster_proxy",
    "hypershift_cluster_silence_alerts",
];
const OF_OPERATORS: &str = "hypershift_operator_info";
const OF_POOLS: [&str; 2] = [
    "hypershift_nodepools_available_replicas",
    "hypershift_nodepools_size",
];
/// What must not be reported of a cluster that is gone.
const LEFT: [&str; 13] = [
    "hypershift_cluster_deleting_duration_seconds",
    "hypershift_cluster_guest_cloud_resources_deleting_duration_seconds",
    "hypershift_cluster_initial_rolling_out_duration_seconds",
    "hypershift_cluster_invalid_aws_creds",
    "hypershift_cluster_limited_support_enabled",
    "hypershift_cluster_proxy",
    "hypershift_cluster_silence_alerts",
    "hypershift_cluster_upgrading_duration_seconds",
    "hypershift_cluster_waiting_initial_availability_duration_seconds",
    "hypershift_nodepools_available_replicas",
    "hypershift_nodepools_deleting_duration_seconds",
    "hypershift_nodepools_initial_rolling_out_duration_seconds",
    "hypershift_nodepools_size",
];

pub(crate) fn present(observed: &Observed) -> Vec<Finding> {
    let (Some(metrics), Some(cluster)) = (&observed.metrics, &observed.hosted_cluster) else {
        return Vec::new();
    };
    let of = |object: &serde_json::Value| {
        let metadata = &object["metadata"];
        (
            text(&metadata["namespace"]).to_owned(),
            text(&metadata["name"]).to_owned(),
        )
    };
    let mut missing = Vec::new();
    let (namespace, name) = of(cluster);
    let mut names = OF_CLUSTERS.to_vec();
    if cluster["spec"]["platform"]["type"] == "AWS" {
        names.push("hypershift_cluster_invalid_aws_creds");
    }
    for metric in names {
        if !has(metrics, metric, &namespace, &name) {
            missing.push(format!("{metric} of HostedCluster {namespace}/{name}"));
        }
    }
    for pool in &observed.node_pools {
        let (namespace, name) = of(pool);
        for metric in OF_POOLS {
            if !has(metrics, metric, &namespace, &name) {
                missing.push(format!("{metric} of NodePool {namespace}/{name}"));
            }
        }
    }
    if !metrics.lines().any(|line| is_sample(line, OF_OPERATORS)) {
        missing.push(OF_OPERATORS.to_owned());
    }
    let missing = missing.into_iter();
    missing
        .map(|metric| Finding::new(Invariant::ClusterMetrics, metric, "it is not reported"))
        .collect()
}

/// The lines of metrics about a cluster or its pools that is gone. `metrics` is in text format.
pub fn left(metrics: &str, namespace: &str, cluster: &str, pools: &[String]) -> Vec<String> {
    let names = std::iter::once(cluster).chain(pools.iter().map(String::as_str));
    let names: Vec<_> = names.collect();
    let lines = metrics.lines().filter(|line| {
        LEFT.iter().any(|metric| is_sample(line, metric))
            && names.iter().any(|name| is_about(line, namespace, name))
    });
    lines.map(str::to_owned).collect()
}

fn has(metrics: &str, metric: &str, namespace: &str, name: &str) -> bool {
    let mut lines = metrics.lines();
    lines.any(|line| is_sample(line, metric) && is_about(line, namespace, name))
}

/// Whether a line is a sample of a metric, and not of one whose name is longer.
fn is_sample(line: &str, metric: &str) -> bool {
    let rest = line.strip_prefix(metric);
    rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
}

/// Whether the labels of a sample name an object. Other labels end with `name`, too.
fn is_about(line: &str, namespace: &str, name: &str) -> bool {
    let has = |label: &str, value: &str| {
        let label = format!("{label}=\"{value}\"");
        ["{", ","]
            .iter()
            .any(|before| line.contains(&format!("{before}{label}")))
    };
    has("namespace", namespace) && has("name", name)
}
