//! `migrate retry`: has a migration that failed tried again, and one that was held tried at all.

use api::annotations::{
    MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD,
};
use clap::Args;
use ownership::MigrationState;

use super::fleet::Line;
use super::wish::{Wish, WishArgs};

/// Flags of `migrate retry`.
#[derive(Debug, Args)]
#[command(
    after_help = "Mend the cause first: `hypershift migrate status` names it. An operator that may migrate at all (its \
                  flag --migration-concurrency) begins within its resync period, and in its turn.\n\n\
                  Exit status: 0 asked for, 1 not, 64 wrong usage."
)]
pub(crate) struct Retry {
    #[command(flatten)]
    args: WishArgs,
}

// === impl Retry ===

impl Retry {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let cleared = [
            MIGRATION_FAILED,
            MIGRATION_FAILURE_MESSAGE,
            MIGRATION_ATTEMPTS,
            MIGRATION_HOLD,
        ];
        self.args.ask(&Wish {
            annotations: cleared.map(|key| (key, None)).into(),
            problem,
            names_others: false,
            asked: "its migration is tried again",
            none: Some("no migration has failed, and none is held"),
        })
    }
}

/// Why there is nothing to be tried again.
fn problem(line: &Line) -> Option<&'static str> {
    match line.state {
        MigrationState::Failed => None,
        MigrationState::Pending if line.held => None,
        MigrationState::Pending => Some("its migration has not failed: it waits for its turn"),
        MigrationState::Active => Some("its migration is under way"),
        MigrationState::Done => Some("it is on private types already"),
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
