//! `migrate status`: the state of each hosted cluster's migration, and what prevents it.

use std::fmt::Write as _;

use anyhow::Context;
use clap::Args;
use ownership::MigrationState;
use serde::Serialize;

use super::fleet::{Chosen, Line};
use super::groups::Format;
use crate::doctor::command::Unwell;
use crate::hosted::Hosted;
use crate::install::{TargetArgs, display, runtime};

/// Flags of `migrate status`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no migration failed, 2 at least one failed, 64 invalid usage."
)]
pub(crate) struct Status {
    #[command(flatten)]
    chosen: Chosen,

    /// Form of what is printed on standard output
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    target: TargetArgs,
}

/// Of each, how many.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    done: usize,
    pending: usize,
    active: usize,
    failed: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    counts: Counts,
    hosted_clusters: Vec<Line>,
}

// === impl Status ===

impl Status {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(self.show())
    }

    async fn show(&self) -> anyhow::Result<()> {
        let hosted = Hosted::connect(&self.target.access()).await?;
        let clusters = self.chosen.find(&hosted, true).await?;
        let report = Report::new(clusters.iter().map(Line::of).collect());
        match self.output {
            Format::Text => display::print(&report.text())?,
            Format::Json => {
                let text = serde_json::to_string_pretty(&report).context("cannot write JSON")?;
                display::print(&format!("{text}\n"))?;
            }
        }
        if report.counts.failed > 0 {
            return Err(Unwell.into());
        }
        Ok(())
    }
}

// === impl Report ===

impl Report {
    fn new(mut lines: Vec<Line>) -> Self {
        // What wants a person comes first.
        lines.sort_by_key(|line| {
            let place = match line.state {
                MigrationState::Failed => 0,
                MigrationState::Active => 1,
                MigrationState::Pending => 2,
                MigrationState::Done => 3,
            };
            (place, line.id())
        });
        let mut counts = Counts::default();
        for line in &lines {
            match line.state {
                MigrationState::Done => counts.done += 1,
                MigrationState::Pending => counts.pending += 1,
                MigrationState::Active => counts.active += 1,
                MigrationState::Failed => counts.failed += 1,
            }
        }
        Self {
            counts,
            hosted_clusters: lines,
        }
    }

    fn text(&self) -> String {
        let Counts {
            done,
            pending,
            active,
            failed,
        } = self.counts;
        let mut text =
            format!("{done} done, {pending} pending, {active} active, {failed} failed\n");
        for line in &self.hosted_clusters {
            // What is done says enough by being counted.
            if line.state == MigrationState::Done && !line.unwanted {
                continue;
            }
            let standing = line.state.name();
            let _ = write!(text, "\n{}  {standing}", line.id());
            if !line.reason.is_empty() {
                let _ = write!(text, "  {}", line.reason);
            }
            if line.held {
                text.push_str("  (held)");
            }
            if line.unwanted {
                text.push_str("  (rollback requested)");
            }
            text.push('\n');
            if !line.message.is_empty() {
                let _ = writeln!(text, "  {}", line.message);
            }
            if let Some((count, last)) = line.attempts.as_deref().and_then(|it| it.split_once('@'))
            {
                let _ = writeln!(text, "  failed {count} times, last at {last}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use api::annotations::{
        MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE, PRIVATE_CAPI_TYPES,
    };

    use super::super::fleet::tests::line;
    use super::*;

    #[test]
    fn what_wants_a_person_comes_first() {
        let report = Report::new(vec![
            line(&[(PRIVATE_CAPI_TYPES, "true")]),
            line(&[]),
            line(&[
                (MIGRATION_FAILED, "quiesce-timeout"),
                (MIGRATION_FAILURE_MESSAGE, "pod p on n"),
                (MIGRATION_ATTEMPTS, "2@2030-01-31T12:00:00Z"),
            ]),
        ]);
        let expected = "1 done, 1 pending, 0 active, 1 failed\n\
            \nclusters/one  failed  quiesce-timeout\n  pod p on n\n  failed 2 times, last at 2030-01-31T12:00:00Z\n\
            \nclusters/one  pending\n";
        assert_eq!(report.text(), expected);
    }
}
