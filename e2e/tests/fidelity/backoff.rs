//! How a client waits before it tries again.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

/// Short, so that proxies are met in all states.
const PAUSE: Duration = Duration::from_millis(20);

/// A client's patience with one request.
#[derive(Debug)]
pub(crate) struct Backoff {
    start: Instant,
    within: Duration,
}

// === impl Backoff ===

impl Backoff {
    pub(crate) fn new(within: Duration) -> Self {
        Self {
            start: Instant::now(),
            within,
        }
    }

    /// Waits a little, or gives up for this reason.
    pub(crate) async fn again(&self, reason: &str) -> Result<()> {
        ensure!(
            self.start.elapsed() < self.within,
            "gave up after {:?}: {reason}",
            self.within
        );
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn gives_up_after_the_limit_with_the_cause() {
        assert!(
            Backoff::new(Duration::from_mins(1))
                .again("down")
                .await
                .is_ok()
        );
        let error = Backoff::new(Duration::ZERO)
            .again("down")
            .await
            .unwrap_err();
        assert!(error.to_string().contains("down"), "{error}");
    }
}
