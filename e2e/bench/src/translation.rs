//! The translator by itself.

use anyhow::{Result, bail};
use load::wire::{Job, Outcome, Translation};

use super::plan::Plan;
use super::stage::Stage;
use testbed::progress::Progress;

/// Size of the list that is translated: larger than the processor's caches.
const BYTES: u64 = 10_000_000;

/// Measures in the load client, which is built with optimisations.
pub(super) async fn measure(
    stage: &mut Stage<'_>,
    plan: &Plan,
    progress: &Progress,
) -> Result<Translation> {
    let step = progress.step("the translator by itself");
    let job = Job::Translate {
        bytes: BYTES,
        millis: plan.translation_millis,
    };
    let outcome = stage.perform_alone(&job).await?;
    step.done();
    match outcome {
        Outcome::Translation(translation) => Ok(translation),
        other => bail!("the load client returned {other:?} instead of speeds"),
    }
}
