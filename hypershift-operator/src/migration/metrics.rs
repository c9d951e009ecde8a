//! Metrics of migrations. The names are API: alerts and dashboards use them.
//!
//! The gauges come from one [`StateCounts`], which is replaced as a whole: they add up at every scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::state_counts::StateCounts;
use crate::cluster_ref::Id;

/// The prefix of all names.
pub(crate) const PREFIX: &str = "hypershift_private_capi";
/// Buckets for the duration of migrations, in seconds.
const DURATION: [f64; 12] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0,
];
/// Cluster sizes: maximum number of machines, label value.
const SIZES: [(usize, &str); 4] = [
    (10, "1-10"),
    (100, "11-100"),
    (500, "101-500"),
    (usize::MAX, "over-500"),
];

/// The metrics of migrations.
#[derive(Debug)]
pub(crate) struct Metrics {
    state: Arc<Mutex<State>>,
    migrated: Counter,
    reversed: Counter,
    duration: Family<SizeLabels, Histogram, fn() -> Histogram>,
}

/// The gauges.
#[derive(Debug, Default)]
struct State {
    counts: StateCounts,
    /// Start times of migrations in progress.
    begun: BTreeMap<Id, Timestamp>,
}

/// Encodes all gauges from one state, so that they are consistent.
#[derive(Debug)]
struct Present(Arc<Mutex<State>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SizeLabels {
    cluster_size: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    failure_reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Metrics at zero.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(DURATION);
        let metrics = Self {
            state: Arc::default(),
            migrated: Counter::default(),
            reversed: Counter::default(),
            duration: Family::new_with_constructor(histogram),
        };
        registry.register(
            "migrated_hosted_clusters",
            "Completed migrations to private types",
            metrics.migrated.clone(),
        );
        registry.register(
            "reversed_hosted_clusters",
            "Completed migrations back to standard types",
            metrics.reversed.clone(),
        );
        registry.register_with_unit(
            "migration_duration",
            "Duration of completed migrations, from lock to end, by number of machines",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register_collector(Box::new(Present(Arc::clone(&metrics.state))));
        metrics
    }

    /// All HostedClusters were evaluated.
    pub(crate) fn counted(&self, counts: StateCounts) {
        state(&self.state).counts = counts;
    }

    /// A migration began at this time.
    pub(crate) fn began(&self, id: &Id, at: Timestamp) {
        state(&self.state).begun.insert(id.clone(), at);
    }

    /// It ended.
    pub(crate) fn ended(&self, id: &Id) {
        state(&self.state).begun.remove(id);
    }

    /// Clears the gauges: another process leads.
    pub(crate) fn forget(&self) {
        *state(&self.state) = State::default();
    }

    /// A cluster is on private types now.
    pub(crate) fn migrated(&self, machines: usize, took: Duration) {
        self.migrated.inc();
        self.took(machines, took);
    }

    /// A cluster is back on standard types.
    pub(crate) fn reversed(&self, machines: usize, took: Duration) {
        self.reversed.inc();
        self.took(machines, took);
    }

    fn took(&self, machines: usize, took: Duration) {
        let size = SIZES.iter().find(|(most, _)| machines <= *most);
        let cluster_size = size.map_or("over-500", |(_, name)| name);
        let duration = self.duration.get_or_create(&SizeLabels { cluster_size });
        duration.observe(took.as_secs_f64());
    }
}

fn state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector for Present {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let state = state(&self.0);
        let counts = &state.counts;
        let began = state.begun.values().min().map_or(0, |at| at.as_second());
        gauge(
            &mut encoder,
            "pending_hosted_clusters_total",
            "Hosted clusters on standard types that wait for their migration",
            counts.pending,
        )?;
        gauge(
            &mut encoder,
            "hosted_clusters_total",
            "All hosted clusters",
            counts.total(),
        )?;
        gauge(
            &mut encoder,
            "migration_start_time",
            "Start of the oldest migration in progress, in Unix seconds; 0 if there is none",
            u64::try_from(began).unwrap_or_default(),
        )?;
        let states = Family::<StateLabels, Gauge>::default();
        for (state, count) in [
            ("done", counts.done),
            ("pending", counts.pending),
            ("active", counts.active),
            ("failed", counts.all_failed()),
        ] {
            states
                .get_or_create(&StateLabels { state })
                .set(signed(count));
        }
        let help = "Hosted clusters by migration state";
        let metric =
            encoder.encode_descriptor("hosted_clusters", help, None, states.metric_type())?;
        states.encode(metric)?;
        let failed = Family::<FailureLabels, Gauge>::default();
        for (&failure_reason, &count) in &counts.failed {
            let labels = FailureLabels { failure_reason };
            failed.get_or_create(&labels).set(signed(count));
        }
        let (name, help) = (
            "migration_failed_hosted_clusters_total",
            "Hosted clusters whose last migration failed, by reason",
        );
        let metric = encoder.encode_descriptor(name, help, None, failed.metric_type())?;
        failed.encode(metric)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> Result<(), fmt::Error> {
    let gauge = ConstGauge::new(signed(value));
    let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metrics::exposition;

    fn text(metrics: impl FnOnce(&Metrics)) -> String {
        let mut registry = Registry::default();
        let all = Metrics::new(registry.sub_registry_with_prefix(PREFIX));
        metrics(&all);
        exposition::of(&registry)
    }

    fn id(name: &str) -> Id {
        Id {
            namespace: "clusters".to_owned(),
            name: name.to_owned(),
        }
    }

    /// Every metric, at least once.
    fn all() -> String {
        text(|metrics| {
            metrics.counted(StateCounts {
                done: 3,
                pending: 2,
                active: 1,
                failed: BTreeMap::from([("conflict", 4)]),
            });
            metrics.began(&id("one"), Timestamp::from_second(500).unwrap());
            metrics.began(&id("two"), Timestamp::from_second(400).unwrap());
            metrics.began(&id("three"), Timestamp::from_second(300).unwrap());
            metrics.ended(&id("three"));
            metrics.migrated(12, Duration::from_secs(7));
            metrics.reversed(1000, Duration::from_secs(7));
        })
    }

    #[test]
    fn metric_names_match_the_alerts() {
        let text = all();
        for line in [
            "hypershift_private_capi_migrated_hosted_clusters_total 1",
            "hypershift_private_capi_reversed_hosted_clusters_total 1",
            "hypershift_private_capi_pending_hosted_clusters_total 2",
            "hypershift_private_capi_hosted_clusters_total 10",
            "hypershift_private_capi_hosted_clusters{state=\"done\"} 3",
            "hypershift_private_capi_migration_failed_hosted_clusters_total{failure_reason=\"conflict\"} 4",
            "hypershift_private_capi_migration_duration_seconds_bucket{le=\"5.0\",cluster_size=\"11-100\"} 0",
            "hypershift_private_capi_migration_duration_seconds_bucket{le=\"10.0\",cluster_size=\"11-100\"} 1",
            "hypershift_private_capi_migration_duration_seconds_bucket{le=\"10.0\",cluster_size=\"over-500\"} 1",
            "hypershift_private_capi_migration_start_time 400",
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn alerts_and_their_runbooks_name_metrics_that_exist() {
        let text = all();
        let pages = [
            include_str!("../../../manifests/alerts/migration.yaml"),
            include_str!("../../../docs/runbooks/HyperShiftPrivateCAPIMigrationFailed.md"),
            include_str!("../../../docs/runbooks/HyperShiftPrivateCAPIMigrationStuck.md"),
        ];
        let named = exposition::named(&pages, PREFIX);
        for word in &named {
            assert!(text.contains(&format!("\n{word}")), "{word}");
        }
        assert!(named.len() >= 3, "{named:?}");
    }

    #[test]
    fn every_metric_is_documented() {
        let page = include_str!("../../../docs/metrics.md");
        for name in exposition::names(&all()) {
            assert!(page.contains(&format!("`{name}")), "{name}");
        }
    }

    proptest! {
        /// Every scrape adds up, whatever was counted before it.
        /// Check M20.
    #[test]
        fn states_add_up_at_every_scrape(counts in prop::collection::vec(0..1000_u64, 5)) {
            let text = text(|metrics| {
                metrics.counted(StateCounts { done: 9, ..StateCounts::default() });
                metrics.counted(StateCounts {
                    done: counts[0],
                    pending: counts[1],
                    active: counts[2],
                    failed: BTreeMap::from([("conflict", counts[3]), ("quiesce-timeout", counts[4])]),
                });
            });
            let sum = |prefix: &str| -> u64 {
                text.lines().filter(|line| line.starts_with(prefix))
                    .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
            };
            prop_assert_eq!(sum("hypershift_private_capi_hosted_clusters{"), sum("hypershift_private_capi_hosted_clusters_total "));
            prop_assert_eq!(sum("hypershift_private_capi_migration_failed_hosted_clusters_total{"), counts[3] + counts[4]);
        }
    }
}
