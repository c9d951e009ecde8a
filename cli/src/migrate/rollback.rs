//! `migrate rollback`: requests a rollback from private to standard types, which the operator carries out as a migration.

use api::annotations::{MIGRATION_ROLLBACK, ROLLBACK_REQUESTED};
use clap::Args;
use ownership::MigrationState;

use super::fleet::Line;
use super::request::{Request, RequestArgs};

/// Flags of `migrate rollback`.
#[derive(Debug, Args)]
#[command(
    after_help = "A migration that fails is undone by itself: this is for clusters that were migrated, and are wanted \
                  back. It is a migration the other way, with the same checks, and can fail like one.\n\n\
                  operator-legacy takes the cluster over: it has to be installed. The cluster is held afterwards, so \
                  that it is not migrated again at once; `hypershift migrate retry` lifts that.\n\n\
                  The operator goes it in its turn, if it may migrate at all (its flag --migration-concurrency).\n\n\
                  Exit status: 0 asked for, 1 not, 64 wrong usage."
)]
pub(crate) struct Rollback {
    #[command(flatten)]
    args: RequestArgs,
}

// === impl Rollback ===

impl Rollback {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        self.args.send(&Request {
            annotations: [(MIGRATION_ROLLBACK, Some(ROLLBACK_REQUESTED))].into(),
            problem,
            names_others: true,
            done: "the way back is asked for",
            none: None,
        })
    }
}

/// Why there is no way back to be asked for.
fn problem(line: &Line) -> Option<&'static str> {
    match line.state {
        MigrationState::Done => None,
        MigrationState::Active => Some("its migration is under way: wait for its end"),
        MigrationState::Pending | MigrationState::Failed => Some("it is on standard types"),
    }
}

#[cfg(test)]
mod tests {
    use api::annotations::{MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES};

    use super::super::fleet::tests::line;
    use super::*;

    /// Check M12.
    #[test]
    fn only_private_clusters_without_a_migration_can_be_rolled_back() {
        let private = (PRIVATE_CAPI_TYPES, "true");
        for (annotations, is_asked) in [
            (&[private][..], true),
            (&[private, (MIGRATION_IN_PROGRESS, "true")], false),
            (&[(MIGRATION_FAILED, "conflict")], false),
            (&[], false),
        ] {
            let found = problem(&line(annotations));
            assert_eq!(found.is_none(), is_asked, "{annotations:?} {found:?}");
        }
    }
}
