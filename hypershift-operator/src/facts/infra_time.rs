//! How long requests to the infrastructure cluster of a user's kubeconfig may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The time of one reconcile for all requests to a user's server: one that stalls each of them would keep other clusters from
/// being reconciled. What else takes time in a reconcile does not count.
#[derive(Debug, Clone, Default)]
pub(crate) struct InfraTime {
    /// In milliseconds. Copies of the facts share it.
    used: Arc<AtomicU64>,
}

// === impl InfraTime ===

impl InfraTime {
    /// All of it.
    pub(crate) const TOTAL: Duration = Duration::from_secs(10);

    /// When requests that begin now have to end.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.left()
    }

    /// Whether none is left.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Counts requests that took this time.
    pub(crate) fn count(&self, duration: Duration) {
        let used = duration.min(Self::TOTAL).as_millis();
        let used = u64::try_from(used).unwrap_or_default();
        self.used.fetch_add(used, Ordering::Relaxed);
    }

    fn left(&self) -> Duration {
        let used = Duration::from_millis(self.used.load(Ordering::Relaxed));
        Self::TOTAL.saturating_sub(used)
    }
}
