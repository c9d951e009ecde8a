//! Waiting for conditions, with a deadline and a reason when it passes.

use std::ops::AsyncFnMut;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

/// How often a condition is looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// Waits until `probe` succeeds. An error of the probe means "not yet", and the last one is in the final error.
pub async fn until<T>(
    what: &str,
    within: Duration,
    mut probe: impl AsyncFnMut() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let pending = match probe().await {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        if start.elapsed() >= within {
            return Err(pending)
                .with_context(|| format!("waited {} for {what}", seconds(start.elapsed())));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Checks that `probe` succeeds all through `period`. The first error ends it.
pub async fn throughout(
    what: &str,
    period: Duration,
    mut probe: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let start = Instant::now();
    loop {
        probe().await.with_context(|| {
            format!(
                "{what} did not hold: broken after {}",
                seconds(start.elapsed())
            )
        })?;
        if start.elapsed() >= period {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL * 10).await;
    }
}

/// A human-readable duration: `1.2 s`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// "Not yet", with the reason. For probes that have nothing else to say.
pub fn not_yet<T>(reason: impl std::fmt::Display) -> Result<T> {
    Err(anyhow!("{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ends_with_the_first_success() {
        let mut left = 3;
        let found = until("countdown", Duration::from_mins(1), async || {
            left -= 1;
            if left > 0 {
                return not_yet(format!("{left} left"));
            }
            Ok("done")
        })
        .await
        .unwrap();
        assert_eq!((found, left), ("done", 0));
    }

    #[tokio::test]
    async fn the_error_says_what_was_missing() {
        let error = until("a pod", Duration::ZERO, async || {
            not_yet::<()>("still Pending")
        })
        .await
        .unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("for a pod: still Pending"), "{text}");
    }

    #[tokio::test]
    async fn a_broken_condition_ends_the_watch() {
        let mut looks = 0;
        let error = throughout("calm", Duration::from_mins(1), async || {
            looks += 1;
            not_yet("a write")
        })
        .await
        .unwrap_err();
        assert_eq!(looks, 1);
        assert!(format!("{error:#}").contains("a write"));
    }
}
