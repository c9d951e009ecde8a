//! Metrics of leader election.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of leader election.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    held: Gauge,
    epoch: Gauge,
    lost: Counter,
    errors: Family<ReasonLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Metrics at zero.
    pub fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "lease_held",
            "Whether this process leads (1) or stands by (0)",
            metrics.held.clone(),
        );
        registry.register(
            "lease_epoch",
            "The fencing epoch of this process's last term",
            metrics.epoch.clone(),
        );
        registry.register(
            "lease_lost",
            "Terms that ended because the lease could not be renewed",
            metrics.lost.clone(),
        );
        registry.register(
            "lease_errors",
            "Failed reads and writes of the lease",
            metrics.errors.clone(),
        );
        metrics
    }

    /// A term has begun.
    pub(super) fn begun(&self, epoch: i32) {
        self.epoch.set(epoch.into());
        self.held.set(1);
    }

    /// A term has ended.
    pub(super) fn ended(&self) {
        self.held.set(0);
    }

    /// The term ended because the lease could not be renewed.
    pub(super) fn lost(&self) {
        self.lost.inc();
    }

    /// A read or a write of the lease failed.
    pub(super) fn error(&self, reason: &'static str) {
        self.errors.get_or_create(&ReasonLabels { reason }).inc();
    }
}
