//! Passes of a deletion: each deletes what it finds, and they are repeated until one finds nothing.

use std::time::Duration;

use anyhow::bail;
use support::rest::{Calls, Error};

use super::executor::Executor;

/// Between two passes.
const PAUSE: Duration = Duration::from_secs(10);
/// How many passes there are: what is refused by then needs a user.
const PASSES: u32 = 60;

/// What a pass has found.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// What is still there.
    left: Vec<String>,
    /// A refusal that no repetition changes.
    denied: Option<Error>,
}

// === impl Pass ===

impl Pass {
    /// The value, or nothing with a note of the refusal. What is gone already is no refusal.
    pub(super) fn check<T>(&mut self, what: &str, result: Result<T, Error>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) if error.is_absent() => return None,
            Err(error) => error,
        };
        self.left.push(format!("{what}: {error}"));
        if error.is_denied() {
            self.denied.get_or_insert(error);
        }
        None
    }
}

impl<C: Calls> Executor<'_, C> {
    /// Repeats passes until nothing is left.
    pub(super) async fn until_empty(
        &self,
        what: &str,
        pass: impl AsyncFn() -> Pass,
    ) -> anyhow::Result<()> {
        let mut step = self.display.step(&format!("deleting {what}"));
        for _ in 0..PASSES {
            let Pass { left, denied } = Box::pin(pass()).await;
            if let Some(error) = denied {
                return Err(anyhow::Error::from(error).context(format!(
                    "failed to delete {what}; run the command again with credentials that may do it"
                )));
            }
            if left.is_empty() {
                step.done("deleted");
                return Ok(());
            }
            step.update(&left.join("; "));
            self.calls.pause(PAUSE).await;
        }
        bail!("failed to delete {what}: it is still refused. Run the command again to continue");
    }
}
