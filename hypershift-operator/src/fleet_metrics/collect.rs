//! Encodes the samples at each scrape.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::FleetMetrics;

/// Time from the creation of a HostedCluster until a condition became true.
pub(super) const CLUSTER_TRANSITION: &str = "hypershift_hosted_cluster_transition_seconds";
/// The same for NodePools.
pub(super) const POOL_TRANSITION: &str = "hypershift_nodepools_transition_seconds";
/// Buckets, in seconds.
const BUCKETS: [f64; 13] = [
    5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0,
];

/// All gauges and their help.
pub(super) const GAUGES: [(&str, &str); 20] = [
    (
        "hypershift_cluster_deleting_duration_seconds",
        "Time since the deletion of a hosted cluster began",
    ),
    (
        "hypershift_cluster_guest_cloud_resources_deleting_duration_seconds",
        "Time since the deletion of a hosted cluster began, while it still has cloud resources",
    ),
    (
        "hypershift_cluster_identity_providers",
        "Identity providers of hosted clusters, by kind",
    ),
    (
        "hypershift_cluster_initial_rolling_out_duration_seconds",
        "Time since a hosted cluster was created, until its first release is rolled out",
    ),
    (
        "hypershift_cluster_invalid_aws_creds",
        "Whether AWS accepts a hosted cluster's credentials: yes (0), no (1) or unknown (2)",
    ),
    (
        "hypershift_cluster_limited_support_enabled",
        "Whether a hosted cluster is labelled for limited support (1) or not (0)",
    ),
    (
        "hypershift_cluster_proxy",
        "Whether a hosted cluster has a proxy (1) or not (0)",
    ),
    (
        "hypershift_cluster_proxy_ca_valid",
        "Whether the trusted CA of a hosted cluster's proxy is valid (1) or not (0)",
    ),
    (
        "hypershift_cluster_silence_alerts",
        "Whether a hosted cluster is labelled to silence its alerts (1) or not (0)",
    ),
    (
        "hypershift_cluster_size_override_instances",
        "Hosted clusters whose size is set by an annotation",
    ),
    (
        "hypershift_cluster_upgrading_duration_seconds",
        "Time since the upgrade of a hosted cluster began",
    ),
    (
        "hypershift_cluster_waiting_initial_availability_duration_seconds",
        "Time since a hosted cluster was created, until it is available for the first time",
    ),
    (
        "hypershift_hostedcluster_nodepools",
        "Node pools of a hosted cluster",
    ),
    ("hypershift_hostedclusters", "Hosted clusters, by platform"),
    (
        "hypershift_hostedclusters_failure_conditions",
        "Hosted clusters with a condition that does not have its expected status",
    ),
    ("hypershift_nodepools", "Node pools, by platform"),
    (
        "hypershift_nodepools_available_replicas",
        "Available nodes of a node pool",
    ),
    (
        "hypershift_nodepools_deleting_duration_seconds",
        "Time since the deletion of a node pool began",
    ),
    (
        "hypershift_nodepools_failure_conditions",
        "Node pools with a condition that does not have its expected status",
    ),
    (
        "hypershift_nodepools_initial_rolling_out_duration_seconds",
        "Time since a node pool was created, until its nodes run its release",
    ),
];
/// Desired number of nodes.
pub(super) const SIZE: (&str, &str) = ("hypershift_nodepools_size", "Desired nodes of a node pool");

/// Labels of a sample.
pub(super) type Labels = Vec<(&'static str, String)>;

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Labels,
    pub(super) value: Measure,
}

/// The value of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// A number.
    Number(i64),
    /// The seconds since this time.
    Since(Timestamp),
}

/// A condition became true.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transition {
    pub(super) metric: &'static str,
    pub(super) condition: &'static str,
    pub(super) seconds: f64,
}

/// Durations until conditions became true.
#[derive(Debug)]
pub(super) struct Transitions {
    clusters: Family<About, Histogram>,
    pools: Family<About, Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct About {
    condition: &'static str,
}

// === impl Measure ===

impl Measure {
    fn at(self, now: Timestamp) -> f64 {
        match self {
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            Self::Number(number) => number as f64,
            Self::Since(then) => now.duration_since(then).as_secs_f64(),
        }
    }
}

// === impl Transitions ===

impl Default for Transitions {
    fn default() -> Self {
        let family = || Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> _);
        Self {
            clusters: family(),
            pools: family(),
        }
    }
}

impl Transitions {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            CLUSTER_TRANSITION,
            "Time from the creation of a hosted cluster until a condition became true",
            self.clusters.clone(),
        );
        registry.register(
            POOL_TRANSITION,
            "Time from the creation of a node pool until a condition became true",
            self.pools.clone(),
        );
    }

    pub(super) fn observe(&self, transitions: &[Transition]) {
        for transition in transitions {
            let family = if transition.metric == POOL_TRANSITION {
                &self.pools
            } else {
                &self.clusters
            };
            let condition = transition.condition;
            let histogram = family.get_or_create(&About { condition });
            histogram.observe(transition.seconds);
        }
    }
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = Timestamp::now();
        let samples = self
            .samples
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone();
        for (name, help) in GAUGES.into_iter().chain([SIZE]) {
            let Some(series) = samples.get(name) else {
                continue;
            };
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for sample in series {
                let value = sample.value.at(now);
                metric.encode_family(&sample.labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }
}
