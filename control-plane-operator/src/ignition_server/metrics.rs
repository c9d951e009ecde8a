//! Metrics of the ignition server.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of the payload generation time, in seconds.
const BUCKETS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// All metrics.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    requests: Family<Pool, Counter>,
    pub(super) generation: Histogram,
    pub(super) cached: Counter,
    pub(super) missed: Counter,
    pub(super) rotated: Counter,
    pub(super) dropped: Counter,
}

/// Labels come from the Secret, never from the client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
// Existing dashboards use this label name.
#[allow(non_snake_case)]
struct Pool {
    nodePool: String,
}

// === impl Metrics ===

impl Metrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            generation: Histogram::new(BUCKETS),
            cached: Counter::default(),
            missed: Counter::default(),
            rotated: Counter::default(),
            dropped: Counter::default(),
        };
        let registry = registry.sub_registry_with_prefix("ign_server");
        let text = "Payloads served to machines of a pool";
        registry.register("get_request", text, metrics.requests.clone());
        let text = "Time to generate a payload in seconds";
        registry.register(
            "payload_generation_seconds",
            text,
            metrics.generation.clone(),
        );
        let text = "Payloads generated and cached";
        registry.register("payload_cache", text, metrics.cached.clone());
        let text = "Requests with a token that has no payload";
        registry.register("payload_cache_miss", text, metrics.missed.clone());
        let text = "Rotated tokens";
        registry.register("token_rotation", text, metrics.rotated.clone());
        let text = "Connections evicted before they presented a valid token";
        registry.register("connections_dropped", text, metrics.dropped.clone());
        metrics
    }

    /// Counts a served payload.
    pub(super) fn served(&self, pool: &str) {
        let labels = Pool {
            nodePool: pool.to_owned(),
        };
        self.requests.get_or_create(&labels).inc();
    }
}
