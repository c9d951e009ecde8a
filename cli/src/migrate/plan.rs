//! `migrate plan`: what the migration of a hosted cluster would do, without doing any of it.

mod given;
mod release;

use api::group::GroupTable;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use clap::Args;
use migration::groups::Direction;
use migration::preflight::{Finding, Severity};
use migration_executor::{Executor, Options, Scope};
use ownership::{ControlPlaneNamespace, MigrationState};
use ownership_reader::find_namespace;
use payload::Compatibility;

use super::fleet::{Chosen, Line};
use super::groups::{Format, report};
use crate::doctor::command::Unwell;
use crate::hosted::Hosted;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};
use crate::listed::typed;
use release::ReleaseCheck;

/// Flags of `migrate plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes nothing. Lists every object of the control plane namespace with the planned action (moved, new \
                  owner, or unchanged) and the reason. For a cluster on private types, it plans the rollback.\n\n\
                  The release is read, too: one from before private types needs another control-plane-operator, from the \
                  operator's settings or the flags below. A registry that cannot be reached from here is reported, and \
                  does not block.\n\n\
                  It reads with your permissions, not the operator's.\n\n\
                  Exit status: 0 the migration can start, 2 it is blocked, 64 invalid usage."
)]
pub(crate) struct Plan {
    #[command(flatten)]
    chosen: Chosen,

    /// Output format; with --all, one document per cluster
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten, next_help_heading = "Settings of the operator")]
    given: given::GivenArgs,
}

/// Who looks, and how far.
struct Planner<'a> {
    format: Format,
    hosted: &'a Hosted,
    releases: ReleaseCheck,
}

// === impl Plan ===

impl Plan {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(self.show())
    }

    async fn show(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let given = self.given.resolve(hosted.client(), &display).await?;
        let planner = Planner {
            format: self.output,
            hosted: &hosted,
            releases: ReleaseCheck::new(hosted.client().clone(), &given)?,
        };
        let mut is_free = true;
        for cluster in self.chosen.find(&hosted, false).await? {
            let line = Line::of(&cluster);
            let direction = match line.state {
                MigrationState::Pending | MigrationState::Failed => Direction::Forward,
                // All of them is all that are to be migrated.
                MigrationState::Done | MigrationState::Active if self.chosen.is_all() => continue,
                MigrationState::Done => Direction::Reverse,
                MigrationState::Active => {
                    display.say(&format!("{}: its migration is under way", line.id()));
                    continue;
                }
            };
            let found = find_namespace(hosted.client(), &line.namespace, &line.name).await?;
            let Some(namespace) = found.owned() else {
                let refusal = found.refusal(&line.namespace, &line.name);
                let why =
                    refusal.unwrap_or_else(|| format!("there is no namespace {}", found.name()));
                display.say(&format!("{}: {why}", line.id()));
                is_free = false;
                continue;
            };
            let cluster: HostedCluster = match typed(&cluster) {
                Ok(cluster) => cluster,
                Err(unreadable) => {
                    display.say(&unreadable.to_string());
                    is_free = false;
                    continue;
                }
            };
            display.say(&format!("{}:", line.id()));
            is_free &= planner.plan(&cluster, namespace, direction).await?;
        }
        if is_free {
            return Ok(());
        }
        Err(Unwell.into())
    }
}

// === impl Planner ===

impl Planner<'_> {
    /// Prints the plan of one cluster; returns whether the migration may begin.
    async fn plan(
        &self,
        cluster: &HostedCluster,
        namespace: &ControlPlaneNamespace,
        direction: Direction,
    ) -> anyhow::Result<bool> {
        let client = self.hosted.client().clone();
        let scope = Scope {
            namespaces: vec![namespace.to_string()],
            table: GroupTable::default(),
        };
        let mut executor = Executor::open(client, scope, &Options::default()).await?;
        let mut plan = executor.plan(direction).await?;
        if direction == Direction::Forward {
            plan.findings
                .extend(finding(self.releases.check(cluster).await));
        }
        report::print_plan(self.format, &plan)?;
        Ok(plan.may_begin())
    }
}

/// What the plan reports about a release.
fn finding(compatibility: Compatibility) -> Option<Finding> {
    let (severity, message) = match compatibility {
        Compatibility::Compatible => return None,
        Compatibility::Incompatible(why) => (Severity::Blocks, why),
        Compatibility::Unknown(why) => (
            Severity::Note,
            format!(
                "cannot check from here whether the release supports private types: {why}; the operator checks before it \
                 changes anything"
            ),
        ),
    };
    Some(Finding {
        severity,
        check: "release",
        message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_incompatibility_blocks() {
        let severity = |compatibility| finding(compatibility).map(|found| found.severity);
        let why = "why".to_owned();
        assert_eq!(severity(Compatibility::Compatible), None);
        assert_eq!(
            severity(Compatibility::Incompatible(why.clone())),
            Some(Severity::Blocks)
        );
        assert_eq!(severity(Compatibility::Unknown(why)), Some(Severity::Note));
    }
}
