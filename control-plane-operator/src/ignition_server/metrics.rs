//! What the ignition server counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Bounds of the time that a payload takes, in seconds.
const BUCKETS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// All counters.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    requests: Family<Pool, Counter>,
    pub(super) generation: Histogram,
    pub(super) cached: Counter,
    pub(super) missed: Counter,
    pub(super) rotated: Counter,
    pub(super) dropped: Counter,
}

/// From the Secret, never from what a client says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
// The label's name is that of dashboards in use.
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
        let text = "Payloads that machines of a pool were given";
        registry.register("get_request", text, metrics.requests.clone());
        let text = "Seconds that it took to make a payload";
        registry.register(
            "payload_generation_seconds",
            text,
            metrics.generation.clone(),
        );
        let text = "Payloads that were made and kept";
        registry.register("payload_cache", text, metrics.cached.clone());
        let text = "Requests with a token for which there was no payload";
        registry.register("payload_cache_miss", text, metrics.missed.clone());
        let text = "Tokens that were renewed";
        registry.register("token_rotation", text, metrics.rotated.clone());
        let text = "Connections that gave up their place before they showed a token";
        registry.register("connections_dropped", text, metrics.dropped.clone());
        metrics
    }

    /// A machine of this pool was given its payload.
    pub(super) fn served(&self, pool: &str) {
        let labels = Pool {
            nodePool: pool.to_owned(),
        };
        self.requests.get_or_create(&labels).inc();
    }
}
