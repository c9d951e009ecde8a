//! Samples as a scrape sees them.

use std::fmt;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Census;

/// Time from the making of a hosted cluster until a condition of it became true.
pub(super) const CLUSTER_TRANSITION: &str = "hypershift_hosted_cluster_transition_seconds";
/// The same of a node pool.
pub(super) const POOL_TRANSITION: &str = "hypershift_nodepools_transition_seconds";
/// Seconds.
const BUCKETS: [f64; 13] = [
    5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0,
];

/// All gauges, and what they tell.
pub(super) const GAUGES: [(&str, &str); 20] = [
    (
        "hypershift_cluster_deleting_duration_seconds",
        "Time since the deletion of a hosted cluster began",
    ),
    (
        "hypershift_cluster_guest_cloud_resources_deleting_duration_seconds",
        "Time since the deletion of a hosted cluster began whose resources in the cloud are not gone yet",
    ),
    (
        "hypershift_cluster_identity_providers",
        "Identity providers of hosted clusters, by kind",
    ),
    (
        "hypershift_cluster_initial_rolling_out_duration_seconds",
        "Time since a hosted cluster was made whose first release is not rolled out yet",
    ),
    (
        "hypershift_cluster_invalid_aws_creds",
        "Whether AWS takes a hosted cluster's identity: yes (0), no (1) or unknown (2)",
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
        "Whether the authorities of a hosted cluster's proxy are valid (1) or not (0)",
    ),
    (
        "hypershift_cluster_silence_alerts",
        "Whether a hosted cluster is labelled so that its alerts are silent (1) or not (0)",
    ),
    (
        "hypershift_cluster_size_override_instances",
        "Hosted clusters whose size is said by an annotation",
    ),
    (
        "hypershift_cluster_upgrading_duration_seconds",
        "Time since the upgrade of a hosted cluster began",
    ),
    (
        "hypershift_cluster_waiting_initial_availability_duration_seconds",
        "Time since a hosted cluster was made that has never been available",
    ),
    (
        "hypershift_hostedcluster_nodepools",
        "Node pools of a hosted cluster",
    ),
    ("hypershift_hostedclusters", "Hosted clusters, by platform"),
    (
        "hypershift_hostedclusters_failure_conditions",
        "Hosted clusters with a condition that is not as it should be",
    ),
    ("hypershift_nodepools", "Node pools, by platform"),
    (
        "hypershift_nodepools_available_replicas",
        "Nodes of a node pool that are there",
    ),
    (
        "hypershift_nodepools_deleting_duration_seconds",
        "Time since the deletion of a node pool began",
    ),
    (
        "hypershift_nodepools_failure_conditions",
        "Node pools with a condition that is not as it should be",
    ),
    (
        "hypershift_nodepools_initial_rolling_out_duration_seconds",
        "Time since a node pool was made whose nodes have never run its release",
    ),
];
/// How many nodes a node pool is to have.
pub(super) const SIZE: (&str, &str) = (
    "hypershift_nodepools_size",
    "Nodes that a node pool is to have",
);

/// Labels of a sample.
pub(super) type Labels = Vec<(&'static str, String)>;

/// One series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) labels: Labels,
    pub(super) value: Measure,
}

/// What a sample is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// A number.
    Number(i64),
    /// The seconds that have passed since then.
    Since(Timestamp),
}

/// A condition became true.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transition {
    pub(super) metric: &'static str,
    pub(super) condition: &'static str,
    pub(super) seconds: f64,
}

/// How long conditions took.
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
            #[expect(clippy::cast_precision_loss, reason = "nobody has that many")]
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
            "Time from the making of a hosted cluster until a condition of it became true",
            self.clusters.clone(),
        );
        registry.register(
            POOL_TRANSITION,
            "Time from the making of a node pool until a condition of it became true",
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

impl Collector for Census {
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
