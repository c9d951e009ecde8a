//! Metrics of the webhook. No label is derived from the contents of a review.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use support::admin;

/// The prefix of all names.
const PREFIX: &str = "hypershift_capi_conversion";
/// Buckets for the duration of reviews.
const DURATION: [f64; 9] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 25.0];

/// The metrics of the webhook. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    reviews: Family<ReviewLabels, Counter>,
    objects: Counter,
    durations: Histogram,
    retries: Counter,
    ready: Gauge<f64, AtomicU64>,
    connections: Gauge,
    displaced: Counter,
    not_after: Gauge,
    registry: Arc<Registry>,
}

/// The result of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Result {
    /// All objects were converted.
    Converted,
    /// An object cannot be converted.
    Object,
    /// The backend is unreachable, or its response is invalid.
    Backend,
    /// The body is not a review.
    Malformed,
    /// It exceeded the size limit or timed out.
    Limit,
    /// Its memory was needed for smaller reviews.
    Busy,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReviewLabels {
    result: &'static str,
}

// === impl Result ===

impl Result {
    const ALL: [Self; 6] = [
        Self::Converted,
        Self::Object,
        Self::Backend,
        Self::Malformed,
        Self::Limit,
        Self::Busy,
    ];

    fn labels(self) -> ReviewLabels {
        ReviewLabels {
            result: match self {
                Self::Converted => "converted",
                Self::Object => "object",
                Self::Backend => "backend",
                Self::Malformed => "malformed",
                Self::Limit => "limit",
                Self::Busy => "busy",
            },
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Metrics at zero.
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let mut metrics = Self {
            reviews: Family::default(),
            objects: Counter::default(),
            durations: Histogram::new(DURATION),
            retries: Counter::default(),
            ready: Gauge::default(),
            connections: Gauge::default(),
            displaced: Counter::default(),
            not_after: Gauge::default(),
            registry: Arc::default(),
        };
        for result in Result::ALL {
            // An alert on a rate needs the zero before the one.
            drop(metrics.reviews.get_or_create(&result.labels()));
        }
        metrics.register_reviews(&mut registry);
        metrics.register_connections(&mut registry);
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The running program", build);
        metrics.registry = Arc::new(registry);
        metrics
    }

    fn register_reviews(&self, registry: &mut Registry) {
        registry.register("reviews", "Reviews by result", self.reviews.clone());
        registry.register("objects", "Converted objects", self.objects.clone());
        registry.register_with_unit(
            "review_duration",
            "Time from the request head to the response",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "backend_retries",
            "Retried requests to backends",
            self.retries.clone(),
        );
        registry.register(
            "ready",
            "Whether every backend can convert",
            self.ready.clone(),
        );
    }

    fn register_connections(&self, registry: &mut Registry) {
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_displaced",
            "Connections that were closed because too many were open",
            self.displaced.clone(),
        );
        registry.register_with_unit(
            "certificate_not_after",
            "Expiry of the serving certificate in Unix time",
            Unit::Seconds,
            self.not_after.clone(),
        );
    }

    /// A review got a response.
    pub(super) fn completed(&self, result: Result, objects: usize, took: Duration) {
        self.reviews.get_or_create(&result.labels()).inc();
        self.objects
            .inc_by(u64::try_from(objects).unwrap_or(u64::MAX));
        self.durations.observe(took.as_secs_f64());
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }

    pub(super) fn ready(&self, ready: bool) {
        self.ready.set(f64::from(u8::from(ready)));
    }

    pub(super) fn connections(&self, open: usize) {
        self.connections
            .set(i64::try_from(open).unwrap_or(i64::MAX));
    }

    pub(super) fn connection_displaced(&self) {
        self.displaced.inc();
    }

    pub(super) fn set_certificate_expiry(&self, not_after: Option<i64>) {
        self.not_after.set(not_after.unwrap_or_default());
    }

    /// All metrics in the text format of `OpenMetrics`.
    pub(super) fn render(&self) -> String {
        admin::render(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check C07.
    #[test]
    fn conversion_alerts_use_existing_metrics() {
        let alerts = include_str!("../../../manifests/alerts/capi-conversion.yaml");
        let metrics = Metrics::new();
        metrics.completed(Result::Converted, 3, Duration::from_millis(2));
        let text = metrics.render();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut found = 0;
        for (at, _) in alerts.match_indices(PREFIX) {
            let name: String = alerts[at..].chars().take_while(|c| is_name(*c)).collect();
            let series = text.lines().any(|line| {
                line.strip_prefix(&name)
                    .is_some_and(|rest| rest.starts_with(['{', ' ']))
            });
            assert!(series, "{name} is not in\n{text}");
            found += 1;
        }
        assert!(found >= 3, "{found} names");
        assert!(text.contains("hypershift_capi_conversion_objects_total 3"));
    }
}
