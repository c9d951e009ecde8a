//! `migrate plan`: what the migration of a hosted cluster would do, without doing any of it.

use api::group::GroupTable;
use api::names::control_plane_namespace;
use clap::Args;
use migration::groups::Direction;
use migration::mover::{Mover, Options, Scope};

use super::fleet::{Chosen, Line, Standing};
use super::groups::{Format, report};
use crate::doctor::command::Unwell;
use crate::hosted::Hosted;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime};

/// Flags of `migrate plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written. Every object of the control plane's namespace is listed with what becomes of it: \
                  moved, given a new owner, or left where it is, and why. Of a cluster on private types it is the way \
                  back that is planned.\n\n\
                  The rights are yours, not the operator's.\n\n\
                  Exit status: 0 nothing speaks against it, 2 something does, 64 wrong usage."
)]
pub(crate) struct Plan {
    #[command(flatten)]
    chosen: Chosen,

    /// Form of what is printed on standard output: with --all, one document a cluster
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Say nothing on standard error unless something fails
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

// === impl Plan ===

impl Plan {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        runtime()?.block_on(self.show())
    }

    async fn show(&self) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        let hosted = Hosted::connect(&self.target.access()).await?;
        let mut is_free = true;
        for cluster in self.chosen.find(&hosted, false).await? {
            let line = Line::of(&cluster);
            let direction = match line.standing {
                Standing::Pending | Standing::Failed => Direction::Forward,
                // All of them is all that are to be migrated.
                Standing::Done | Standing::Active if self.chosen.is_all() => continue,
                Standing::Done => Direction::Reverse,
                Standing::Active => {
                    display.say(&format!("{}: its migration is under way", line.id()));
                    continue;
                }
            };
            display.say(&format!("{}:", line.id()));
            is_free &= self.plan(&hosted, &line, direction).await?;
        }
        if is_free {
            return Ok(());
        }
        Err(Unwell.into())
    }

    /// Prints one; gives whether nothing speaks against it.
    async fn plan(
        &self,
        hosted: &Hosted,
        line: &Line,
        direction: Direction,
    ) -> anyhow::Result<bool> {
        let scope = Scope {
            namespaces: vec![control_plane_namespace(&line.namespace, &line.name)],
            table: GroupTable::default(),
        };
        let client = hosted.client().clone();
        let mut mover = Mover::open(client, scope, &Options::default()).await?;
        let plan = mover.plan(direction).await?;
        report::print_plan(self.output, &plan)?;
        Ok(plan.may_begin())
    }
}
