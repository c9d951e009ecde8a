//! Applies a stage, object after object.

use anyhow::{Context, anyhow};

use super::said;
use crate::install::args::RunArgs;
use crate::install::cluster::{Apply, Cluster};
use crate::install::difference::Outcome;
use crate::install::display::Display;
use crate::install::kind::Stage;
use crate::install::object::Object;

/// Applies what a stage changes. What is as it should be is left alone.
pub(super) async fn stage(
    cluster: &Cluster,
    args: &RunArgs,
    steps: &[(Object, Outcome)],
    stage: Stage,
    display: &Display,
) -> anyhow::Result<()> {
    let due: Vec<_> = steps
        .iter()
        .filter(|(object, _)| object.id.kind.stage() == stage)
        .collect();
    if due.is_empty() {
        return Ok(());
    }
    let mut step = display.step(match stage {
        Stage::Definitions => "CRDs",
        Stage::Ground => "namespace, permissions and configuration",
        Stage::Workloads => "Deployments",
    });
    let how = Apply {
        dry_run: false,
        force: args.take_over,
    };
    let mut counts = Counts::default();
    for (object, outcome) in due {
        if counts.add(outcome) {
            step.update(&object.id.to_string());
            cluster.apply(object, how).await.map_err(|error| {
                anyhow!("{}", said(&error)).context(format!(
                    "cannot apply {}: what was done stays, run the command again",
                    object.id
                ))
            })?;
        }
    }
    step.done(&counts.summary());
    Ok(())
}

/// Removes what is no longer wanted.
pub(super) async fn prune(
    cluster: &Cluster,
    pruned: &[Object],
    display: &Display,
) -> anyhow::Result<()> {
    for object in pruned {
        cluster
            .delete(&object.id, &object.body)
            .await
            .with_context(|| format!("cannot remove {}", object.id))?;
        display.say(&format!("removed, as no longer wanted: {}", object.id));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Counts {
    created: usize,
    changed: usize,
    unchanged: usize,
}

// === impl Counts ===

impl Counts {
    /// Whether there is anything to do.
    fn add(&mut self, outcome: &Outcome) -> bool {
        let count = match outcome {
            Outcome::Create => &mut self.created,
            Outcome::Change(_) | Outcome::Claim => &mut self.changed,
            Outcome::Unchanged => &mut self.unchanged,
        };
        *count += 1;
        *outcome != Outcome::Unchanged
    }

    fn summary(&self) -> String {
        format!(
            "{} created, {} changed, {} unchanged",
            self.created, self.changed, self.unchanged
        )
    }
}
