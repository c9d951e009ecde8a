//! Samples of NodePools: pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::collect::{Labels, Measure, POOL_TRANSITION, SIZE, Sample, Transition};
use super::{PLATFORMS, became_true, failing, failure, platform, text, time};

/// Conditions, and whether each is true of a healthy NodePool.
pub(super) const EXPECTED: [(&str, bool); 13] = [
    ("AllMachinesReady", true),
    ("AllNodesHealthy", true),
    ("ReachedIgnitionEndpoint", true),
    ("Ready", true),
    ("ReconciliationActive", true),
    ("UpdateManagementEnabled", true),
    ("UpdatingConfig", false),
    ("UpdatingVersion", false),
    ("ValidArchPlatform", true),
    ("ValidGeneratedPayload", true),
    ("ValidMachineConfig", true),
    ("ValidPlatformImage", true),
    ("ValidReleaseImage", true),
];
/// Conditions whose transition to true is measured.
const TIMED: [&str; 3] = [
    "AllMachinesReady",
    "AllNodesHealthy",
    "ReachedIgnitionEndpoint",
];

/// The counts.
#[derive(Debug)]
pub(super) struct Pools {
    samples: BTreeMap<&'static str, Vec<Sample>>,
    platforms: BTreeMap<&'static str, i64>,
    failures: BTreeMap<(&'static str, String), i64>,
}

// === impl Pools ===

impl Default for Pools {
    fn default() -> Self {
        let failures = PLATFORMS.into_iter().flat_map(|platform| {
            EXPECTED.map(|(about, good)| ((platform, failure(about, good)), 0))
        });
        Self {
            samples: BTreeMap::new(),
            platforms: PLATFORMS.map(|name| (name, 0)).into(),
            failures: failures.collect(),
        }
    }
}

impl Pools {
    /// Counts a NodePool; `id` is the cluster ID of its HostedCluster.
    pub(super) fn add(&mut self, pool: &Value, id: &str) {
        let platform = platform(pool);
        *self.platforms.entry(platform).or_default() += 1;
        for failure in failing(pool, &EXPECTED) {
            *self.failures.entry((platform, failure)).or_default() += 1;
        }
        let labels = vec![
            ("namespace", text(pool, "/metadata/namespace").to_owned()),
            ("name", text(pool, "/metadata/name").to_owned()),
            ("_id", id.to_owned()),
            ("cluster_name", text(pool, "/spec/clusterName").to_owned()),
            ("platform", platform.to_owned()),
        ];
        let there = pool["status"]["replicas"].as_i64().unwrap_or(0);
        // With autoscaling, the current number is the desired one.
        let desired = pool["spec"]["replicas"].as_i64().unwrap_or(there);
        self.put(SIZE.0, &labels, Measure::Number(desired));
        let name = "hypershift_nodepools_available_replicas";
        self.put(name, &labels, Measure::Number(there));
        if text(pool, "/status/version").is_empty() {
            let name = "hypershift_nodepools_initial_rolling_out_duration_seconds";
            self.since(name, &labels, time(pool, "/metadata/creationTimestamp"));
        }
        let name = "hypershift_nodepools_deleting_duration_seconds";
        self.since(name, &labels, time(pool, "/metadata/deletionTimestamp"));
    }

    fn put(&mut self, name: &'static str, labels: &Labels, value: Measure) {
        let labels = labels.clone();
        let series = self.samples.entry(name).or_default();
        series.push(Sample { labels, value });
    }

    fn since(&mut self, name: &'static str, labels: &Labels, then: Option<Timestamp>) {
        if let Some(then) = then {
            self.put(name, labels, Measure::Since(then));
        }
    }

    pub(super) fn samples(mut self) -> BTreeMap<&'static str, Vec<Sample>> {
        for (platform, count) in std::mem::take(&mut self.platforms) {
            let labels = vec![("platform", platform.to_owned())];
            self.put("hypershift_nodepools", &labels, Measure::Number(count));
        }
        for ((platform, failure), count) in std::mem::take(&mut self.failures) {
            let labels = vec![("platform", platform.to_owned()), ("condition", failure)];
            let name = "hypershift_nodepools_failure_conditions";
            self.put(name, &labels, Measure::Number(count));
        }
        self.samples
    }

    pub(super) fn transitions(pool: &Value, since: Timestamp, until: Timestamp) -> Vec<Transition> {
        became_true(pool, POOL_TRANSITION, &TIMED, (since, until))
    }
}
