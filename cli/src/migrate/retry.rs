//! `migrate retry`: has a migration that failed tried again, and one that was held tried at all.

use std::collections::BTreeMap;

use anyhow::bail;
use api::annotations::{
    MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD,
};
use clap::Args;

use super::fleet::{Chosen, Line, Standing, annotate};
use crate::hosted::Hosted;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

/// Flags of `migrate retry`.
#[derive(Debug, Args)]
#[command(
    after_help = "Mend the cause first: `hypershift migrate status` names it. The operator begins within its resync \
                  period, and in its turn.\n\nExit status: 0 asked for, 1 not, 64 wrong usage."
)]
pub(crate) struct Retry {
    #[command(flatten)]
    chosen: Chosen,

    /// Say nothing on standard error unless something fails
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

// === impl Retry ===

impl Retry {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(self.ask())
    }

    async fn ask(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let mut asked = 0_usize;
        for cluster in self.chosen.find(&hosted, false).await? {
            let line = Line::of(&cluster);
            if let Some(problem) = problem(&line) {
                if self.chosen.is_all() {
                    continue;
                }
                bail!("{}: {problem}", line.id());
            }
            let cleared = [
                MIGRATION_FAILED,
                MIGRATION_FAILURE_MESSAGE,
                MIGRATION_ATTEMPTS,
                MIGRATION_HOLD,
            ];
            let cleared: BTreeMap<_, _> = cleared.map(|key| (key, None)).into();
            annotate(&hosted, &cluster, &cleared).await?;
            display.say(&format!("{}: its migration is tried again", line.id()));
            asked += 1;
        }
        if asked == 0 {
            display.say("no migration has failed, and none is held");
        }
        Ok(())
    }
}

/// Why there is nothing to be tried again.
fn problem(line: &Line) -> Option<&'static str> {
    match line.standing {
        Standing::Failed => None,
        Standing::Pending if line.held => None,
        Standing::Pending => Some("its migration has not failed: it waits for its turn"),
        Standing::Active => Some("its migration is under way"),
        Standing::Done => Some("it is on private types already"),
    }
}

#[cfg(test)]
mod tests {
    use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES};

    use super::super::fleet::tests::line;
    use super::*;

    #[test]
    fn only_what_failed_or_is_held_is_tried_again() {
        for (annotations, is_tried) in [
            (&[(MIGRATION_FAILED, "conflict")][..], true),
            (&[(MIGRATION_HOLD, "true")], true),
            (&[], false),
            (&[(MIGRATION_IN_PROGRESS, "true")], false),
            (&[(PRIVATE_CAPI_TYPES, "true")], false),
        ] {
            let found = problem(&line(annotations));
            assert_eq!(found.is_none(), is_tried, "{annotations:?} {found:?}");
        }
    }
}
