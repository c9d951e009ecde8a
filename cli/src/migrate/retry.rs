//! `migrate retry`: requests another attempt after a failed migration, or a first one of a held cluster.

use api::annotations::{
    MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE, MIGRATION_HOLD,
};
use clap::Args;
use ownership::MigrationState;

use super::fleet::Line;
use super::request::{Request, RequestArgs};

/// Flags of `migrate retry`.
#[derive(Debug, Args)]
#[command(
    after_help = "Fix the cause first: `hypershift migrate status` shows it. If migrations are enabled (flag \
                  --migration-concurrency of the operator), the cluster is queued within the resync period.\n\n\
                  Exit status: 0 requested, 1 failed, 64 invalid usage."
)]
pub(crate) struct Retry {
    #[command(flatten)]
    args: RequestArgs,
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
        self.args.send(&Request {
            annotations: cleared.map(|key| (key, None)).into(),
            problem,
            names_others: false,
            done: "its migration is tried again",
            none: Some("no migration has failed, and none is held"),
        })
    }
}

/// Why there is nothing to retry.
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
    fn only_failed_and_held_clusters_are_retried() {
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
