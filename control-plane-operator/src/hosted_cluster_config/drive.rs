//! When a pass runs: after a change, now and then, and again after a failure.

use std::time::Duration;

use support::error::chain;
use support::reconcile::{Backoff, Retry};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::error::Error;
use crate::tool::Once;

/// Changes seldom come alone.
const GATHER: Duration = Duration::from_millis(200);

/// Says that something has changed.
#[derive(Debug, Clone)]
pub(super) struct Wake(watch::Sender<()>);

// === impl Wake ===

impl Wake {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Something has changed.
    pub(super) fn wake(&self) {
        self.0.send_replace(());
    }
}

/// Runs a pass for as long as the process leads.
pub(super) async fn drive<F>(
    name: &'static str,
    wake: &Wake,
    period: Duration,
    mut pass: impl FnMut() -> F,
) where
    F: Future<Output = Result<(), Error>>,
{
    let mut changes = wake.0.subscribe();
    let mut backoff = Backoff::default();
    let mut once = Once::default();
    loop {
        changes.borrow_and_update();
        let pause = match pass().await {
            Ok(()) => {
                backoff = Backoff::default();
                once = Once::default();
                period
            }
            Err(error) => {
                let problem = chain(&error);
                if once.is_news(&problem) {
                    tracing::warn!(pass = name, problem, "Not everything could be done");
                }
                backoff.pause(Retry::Backoff)
            }
        };
        if let Ok(Ok(())) = timeout(pause, changes.changed()).await {
            sleep(GATHER).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_changes_are_one_pass() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        };
        let driven = drive("test", &wake, Duration::from_hours(1), pass);
        let changes = async {
            sleep(Duration::from_secs(1)).await;
            for _ in 0..100 {
                wake.wake();
            }
            sleep(Duration::from_secs(10)).await;
        };
        tokio::select! {
            () = driven => {}
            () = changes => {}
        }
        assert_eq!(passes.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_tried_again_soon() {
        let wake = Wake::new();
        let passes = AtomicU32::new(0);
        let pass = || {
            passes.fetch_add(1, Ordering::SeqCst);
            async { Err(Error::waiting("the test")) }
        };
        let driven = drive("test", &wake, Duration::from_hours(1), pass);
        assert!(timeout(Duration::from_secs(8), driven).await.is_err());
        // At 0, 1, 3 and 7 seconds.
        assert_eq!(passes.load(Ordering::SeqCst), 4);
    }
}
