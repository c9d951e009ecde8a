//! The metrics of the operator. No label has an object's name; docs/metrics.md lists them all.

#[cfg(test)]
pub(crate) mod exposition;

use std::sync::Arc;
use std::time::Duration;

use ownership::{Invalid, Owner, OwnershipAnnotation};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// The prefix of all names.
pub(crate) const PREFIX: &str = "hypershift_operator";
/// Label value of HostedClusters without an owner. Dashboards use it.
const OWNER_UNDECIDED: &str = "nobody";
/// Buckets for the duration of an evaluation of all HostedClusters.
const SCAN: [f64; 8] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// The metrics of the operator.
#[derive(Debug)]
pub(crate) struct Metrics {
    scan_duration: Histogram,
    hosted_clusters: Family<OwnerLabels, Gauge>,
    failing: Gauge,
    invalid: Family<InvalidLabels, Gauge>,
    invalid_states: Family<InvalidLabels, Counter>,
    annotated: Family<AnnotationLabels, Counter>,
    errors: Family<ErrorLabels, Counter>,
    writes: Counter,
    legacy_needed: Gauge,
    legacy_running: Gauge,
}

/// Memory of the release cache, read at each scrape.
#[derive(Debug)]
pub(crate) struct ReleaseCache(pub(crate) payload::Releases);

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OwnerLabels {
    owner: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InvalidLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnnotationLabels {
    mark: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    step: &'static str,
    reason: &'static str,
}

// === impl ReleaseCache ===

impl Collector for ReleaseCache {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bytes = i64::try_from(self.0.held().bytes).unwrap_or(i64::MAX);
        let gauge = ConstGauge::new(bytes);
        let help = "Memory held by releases, labels and registry responses";
        let kind = gauge.metric_type();
        let metric = encoder.encode_descriptor("release_cache", help, Some(&Unit::Bytes), kind)?;
        gauge.encode(metric)
    }
}

// === impl Metrics ===

impl Metrics {
    /// Metrics at zero.
    pub(crate) fn new(registry: &mut Registry) -> Arc<Self> {
        let metrics = Self {
            scan_duration: Histogram::new(SCAN),
            hosted_clusters: Family::default(),
            failing: Gauge::default(),
            invalid: Family::default(),
            invalid_states: Family::default(),
            annotated: Family::default(),
            errors: Family::default(),
            writes: Counter::default(),
            legacy_needed: Gauge::default(),
            legacy_running: Gauge::default(),
        };
        metrics.register_fleet(registry);
        metrics.register_work(registry);
        for owner in Owner::ALL {
            metrics.owned(owner, 0);
        }
        Arc::new(metrics)
    }

    fn register_fleet(&self, registry: &mut Registry) {
        registry.register(
            "hostedclusters",
            "HostedClusters by who may write to them",
            self.hosted_clusters.clone(),
        );
        registry.register(
            "failing_hostedclusters",
            "HostedClusters whose last reconciliation failed",
            self.failing.clone(),
        );
        registry.register(
            "invalid_hostedclusters",
            "HostedClusters with an invalid combination of annotations and objects",
            self.invalid.clone(),
        );
        registry.register(
            "legacy_needed",
            "Whether a HostedCluster needs operator-legacy (1) or none does (0)",
            self.legacy_needed.clone(),
        );
        registry.register(
            "legacy_running",
            "Whether the Deployment of operator-legacy exists (1) or not (0)",
            self.legacy_running.clone(),
        );
    }

    fn register_work(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "scan_duration",
            "Duration of one evaluation of all HostedClusters",
            Unit::Seconds,
            self.scan_duration.clone(),
        );
        registry.register(
            "invalid_states",
            "Invalid annotation states detected",
            self.invalid_states.clone(),
        );
        registry.register(
            "marks",
            "Ownership annotations written to HostedClusters",
            self.annotated.clone(),
        );
        registry.register(
            "reconcile_errors",
            "Failed steps, by step and reason",
            self.errors.clone(),
        );
        registry.register(
            "writes",
            "Objects of HostedClusters that were written because they differed from the desired state",
            self.writes.clone(),
        );
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running program", build);
    }

    pub(crate) fn scanned(&self, took: Duration) {
        self.scan_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn owned(&self, owner: Owner, count: usize) {
        let owner = match owner {
            Owner::New => "new",
            Owner::Legacy => "legacy",
            Owner::Migration => "migration",
            Owner::Undecided => OWNER_UNDECIDED,
        };
        let gauge = self.hosted_clusters.get_or_create(&OwnerLabels { owner });
        gauge.set(gauge_value(count));
    }

    pub(crate) fn failing(&self, count: usize) {
        self.failing.set(gauge_value(count));
    }

    /// The states that are invalid now.
    pub(crate) fn invalid(&self, now: impl Iterator<Item = Invalid>) {
        self.invalid.clear();
        for invalid in now {
            let reason = invalid.reason();
            self.invalid.get_or_create(&InvalidLabels { reason }).inc();
        }
    }

    pub(crate) fn invalid_state(&self, invalid: Invalid) {
        let reason = invalid.reason();
        let labels = InvalidLabels { reason };
        self.invalid_states.get_or_create(&labels).inc();
    }

    pub(crate) fn annotated(&self, mark: OwnershipAnnotation) {
        let mark = match mark {
            OwnershipAnnotation::Private => "private",
            OwnershipAnnotation::Legacy => "legacy",
        };
        self.annotated
            .get_or_create(&AnnotationLabels { mark })
            .inc();
    }

    pub(crate) fn error(&self, step: &'static str, reason: &'static str) {
        self.errors
            .get_or_create(&ErrorLabels { step, reason })
            .inc();
    }

    /// Objects of a hosted cluster were written.
    pub(crate) fn wrote(&self, objects: usize) {
        self.writes
            .inc_by(u64::try_from(objects).unwrap_or(u64::MAX));
    }

    pub(crate) fn legacy(&self, needed: bool, running: bool) {
        self.legacy_needed.set(i64::from(needed));
        self.legacy_running.set(i64::from(running));
    }
}

fn gauge_value(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use support::{health, lease};

    use super::*;

    /// Every metric of the operator, at least once.
    fn text() -> String {
        let mut registry = Registry::with_prefix(PREFIX);
        let metrics = Metrics::new(&mut registry);
        let _lease = lease::Metrics::new(&mut registry);
        let health = health::Health::new(&mut registry);
        let _check = health.check("scan", "has not begun");
        let releases = payload::Releases::new(payload::Options::default()).unwrap();
        registry.register_collector(Box::new(ReleaseCache(releases)));
        metrics.scanned(Duration::from_millis(20));
        metrics.owned(Owner::Legacy, 3);
        metrics.invalid([Invalid::LegacyAndPrivate; 2].into_iter());
        metrics.invalid_state(Invalid::LegacyAndPrivate);
        metrics.annotated(OwnershipAnnotation::Legacy);
        metrics.error("list", "Forbidden");
        metrics.legacy(true, true);
        exposition::of(&registry)
    }

    #[test]
    fn metric_names_match_the_alerts() {
        let text = text();
        for line in [
            "hypershift_operator_hostedclusters{owner=\"legacy\"} 3",
            "hypershift_operator_release_cache_bytes 0",
            "hypershift_operator_hostedclusters{owner=\"new\"} 0",
            "hypershift_operator_invalid_hostedclusters{reason=\"LegacyAndPrivate\"} 2",
            "hypershift_operator_invalid_states_total{reason=\"LegacyAndPrivate\"} 1",
            "hypershift_operator_marks_total{mark=\"legacy\"} 1",
            "hypershift_operator_reconcile_errors_total{step=\"list\",reason=\"Forbidden\"} 1",
            "hypershift_operator_scan_duration_seconds_bucket{le=\"0.05\"} 1",
            "hypershift_operator_legacy_needed 1",
            "hypershift_operator_ready{check=\"scan\"} 0",
            "hypershift_operator_lease_held 0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn alerts_and_their_runbooks_name_metrics_that_exist() {
        let text = text();
        let pages = [
            include_str!("../../manifests/alerts/operator.yaml"),
            include_str!("../../docs/runbooks/HyperShiftOperatorDegraded.md"),
        ];
        let named = exposition::named(&pages, PREFIX);
        for word in &named {
            let name = word.strip_suffix("_total").unwrap_or(word);
            assert!(text.contains(&format!("# TYPE {name} ")), "{word}");
        }
        assert!(named.len() >= 5, "{named:?}");
    }

    #[test]
    fn every_metric_is_documented() {
        let page = include_str!("../../docs/metrics.md");
        for name in exposition::names(&text()) {
            assert!(
                page.contains(&format!("`{name}")),
                "{name} is not in docs/metrics.md"
            );
        }
    }
}
