//! Metrics of controllers. No label holds the name of an object.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Buckets for the duration of a reconcile, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// Metrics of all controllers of a process.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    duration: Family<Labels, Histogram>,
    failures: Family<FailureLabels, Counter>,
    depth: Family<Labels, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    controller: &'static str,
    reason: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            failures: Family::default(),
            depth: Family::default(),
        };
        registry.register_with_unit(
            "reconcile_duration",
            "Duration of a reconcile, by controller",
            Unit::Seconds,
            metrics.duration.clone(),
        );
        registry.register(
            "reconcile_failures",
            "Failed reconciles, by controller and reason",
            metrics.failures.clone(),
        );
        registry.register(
            "reconcile_queue_depth",
            "Objects that wait for a reconcile, by controller",
            metrics.depth.clone(),
        );
        metrics
    }

    pub(super) fn reconciled(
        &self,
        controller: &'static str,
        took: Duration,
        failure: Option<&'static str>,
    ) {
        let labels = Labels { controller };
        self.duration
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
        if let Some(reason) = failure {
            let labels = FailureLabels { controller, reason };
            self.failures.get_or_create(&labels).inc();
        }
    }

    pub(super) fn queue_depth(&self, controller: &'static str, depth: usize) {
        let gauge = self.depth.get_or_create(&Labels { controller });
        gauge.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}
