//! `migrate rollback`: requests a rollback from private to standard types, which the operator carries out as a migration.

use api::annotations::{MIGRATION_ROLLBACK, ROLLBACK_REQUESTED};
use clap::Args;
use ownership::MigrationState;

use super::fleet::Line;
use super::request::{Request, RequestArgs};

/// Flags of `migrate rollback`.
#[derive(Debug, Args)]
#[command(
    after_help = "A failed migration is rolled back automatically. This command is for clusters that were migrated and \
                  should return to standard types. It requests a migration in the reverse direction, with the same \
                  checks.\n\n\
                  operator-legacy becomes the owner and must be installed. Afterwards the cluster is held, so that it is \
                  not migrated again; `hypershift migrate retry` removes the hold.\n\n\
                  The operator performs the rollback when it is due, if migrations are enabled \
                  (--migration-concurrency).\n\n\
                  Exit status: 0 requested, 1 failed, 64 invalid usage."
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
