//! `migrate groups`: a migration without an operator, for users who stop and start the controllers themselves.
//!
//! It knows groups and namespaces, and no hosted cluster.

mod controllers;
mod pairs;
pub(super) mod report;

use std::time::Duration;

use anyhow::{Context, bail};
use api::group::CapiTypes;
use clap::{Args, ValueEnum};
use kube::Client;
use migration::failure::Reason;
use migration::journal::Failure;
use migration_executor::{Advance, Error, Executor, Options, Scope};
use serde_json::json;

use crate::Usage;
use crate::crds::source::cluster::connect;
use crate::doctor::command::Unwell;
use crate::install::display::Display;
use crate::install::{TargetArgs, runtime, time};
use controllers::{Controllers, Deployment};
use pairs::Pairs;
use report::Report;

/// How long to wait before looking again at what was not done yet.
const MOMENT: Duration = Duration::from_secs(1);
/// Where the journal keeps which groups are moved.
const PAIRS: &str = "pairs";
/// Where it keeps how many replicas there were.
const REPLICAS: &str = "replicas";

/// Flags of `migrate groups`.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Groups {
    /// API group to move objects from; includes the sub-groups of the group of Cluster API. May be repeated
    #[arg(long, value_name = "GROUP", required = true)]
    from: Vec<String>,

    /// API group to move them to, one for each --from
    #[arg(long, value_name = "GROUP", required = true)]
    to: Vec<String>,

    /// Namespace of the objects; the journal is kept in the first. May be repeated
    #[arg(long, value_name = "NAME", required = true)]
    namespace: Vec<String>,

    /// Show what the migration would do to every object, and what prevents it; write nothing
    #[arg(long)]
    dry_run: bool,

    /// Confirm that no controller of either group runs; the command also checks that objects do not change
    #[arg(long)]
    controllers_are_stopped: bool,

    /// Deployment to scale to zero, as NAMESPACE/NAME; it is not scaled up after success. May be repeated
    #[arg(long, value_name = "DEPLOYMENT")]
    stop: Vec<Deployment>,

    /// Time without changes after which controllers count as stopped
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    calm: Duration,

    /// Roll back the migration in progress, if it is not committed yet
    #[arg(long)]
    roll_back: bool,

    /// Number of concurrent writes
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,

    /// Time limit for retries while the API server is overloaded or unavailable
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    patience: Duration,

    /// Output format
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Suppress progress output
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    target: TargetArgs,
}

/// The form of what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Human-readable text
    Text,
    /// One JSON document
    Json,
}

/// Everything is as it was before.
#[derive(Debug, thiserror::Error)]
#[error("the migration was undone, and everything is as it was before")]
pub(crate) struct RolledBack(#[source] Failure);

/// The text below the flags, with the groups that most users move.
fn after_help() -> String {
    let groups = format!(
        "--from {} --to {} \\\n    --namespace clusters-one",
        api::group::core(CapiTypes::Standard),
        api::group::core(CapiTypes::Private)
    );
    format!(
        "Before the commit, a failure rolls the migration back; after it, the migration can only be completed. If \
         the command is killed, run it again to continue.\n\n\
         Exit status: 0 completed (with --dry-run: not blocked), 1 not completed (run it again), 2 blocked and \
         nothing was written, 3 rolled back, 64 invalid usage.\n\n\
         Examples:\n  \
         hypershift migrate groups {groups} --dry-run\n  \
         hypershift migrate groups {groups} --stop capi-system/capi-controller-manager"
    )
}

// === impl Groups ===

impl Groups {
    /// Runs it.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let pairs = Pairs::new(&self.from, &self.to)?;
        runtime()?.block_on(self.migrate(&pairs))
    }

    async fn migrate(&self, pairs: &Pairs) -> anyhow::Result<()> {
        let client = connect(&self.target.access()).await?;
        let scope = Scope {
            namespaces: self.namespace.clone(),
            table: pairs.table().clone(),
        };
        let options = Options {
            parallel: self.parallel.into(),
            patience: self.patience,
            ..Options::default()
        };
        let mut executor = Executor::open(client.clone(), scope, &options).await?;
        if self.dry_run {
            return self.show_plan(&mut executor, pairs).await;
        }
        self.enter(&client, &mut executor, pairs).await?;
        let controllers = Controllers::new(client, &self.namespace, pairs.table(), self.calm);
        let report = self.carry_out(&mut executor, &controllers).await?;
        report::print(self.output, &report)
    }

    /// Prints what a migration would do.
    async fn show_plan(&self, executor: &mut Executor, pairs: &Pairs) -> anyhow::Result<()> {
        if let Some(journal) = executor.under_way() {
            bail!(
                "a migration of this namespace is under way, in phase {}: there is nothing to plan",
                journal.phase
            );
        }
        let plan = executor.plan(pairs.direction()).await?;
        report::print_plan(self.output, &plan)?;
        if plan.may_begin() {
            return Ok(());
        }
        Err(Unwell.into())
    }

    /// Begins a migration, or takes over the one that is under way.
    async fn enter(
        &self,
        client: &Client,
        executor: &mut Executor,
        pairs: &Pairs,
    ) -> anyhow::Result<()> {
        let display = Display::new(self.quiet);
        if let Some(journal) = executor.under_way() {
            let before = journal.counts[PAIRS].as_str().unwrap_or_default();
            if before != pairs.to_string() {
                bail!(
                    "another migration of this namespace is under way ({before}): run that again, or undo it with \
                     --roll-back"
                );
            }
            display.say(&format!(
                "a migration is under way, in phase {}: it goes on",
                journal.phase
            ));
            executor.resume().await?;
            return self.undo(executor).await;
        }
        if self.roll_back {
            bail!("no migration of this namespace is under way: there is nothing to undo");
        }
        self.promised()?;
        let plan = executor.plan(pairs.direction()).await?;
        if !plan.may_begin() {
            report::print_plan(self.output, &plan)?;
            return Err(Unwell.into());
        }
        display.say(&format!(
            "{} objects to move, {} with owners to add, about {} writes",
            plan.inventory.moved(),
            plan.inventory.reparented(),
            plan.writes
        ));
        let replicas = controllers::replicas(client, &self.stop).await?;
        let counts = json!({ PAIRS: pairs.to_string(), REPLICAS: replicas });
        executor
            .begin(pairs.direction(), counts, json!(null))
            .await?;
        Ok(())
    }

    fn promised(&self) -> anyhow::Result<()> {
        if self.controllers_are_stopped || !self.stop.is_empty() {
            return Ok(());
        }
        let message = "controllers must not run meanwhile: name them with --stop, or promise that they are stopped \
                       with --controllers-are-stopped";
        Err(Usage::new(&message).into())
    }

    async fn undo(&self, executor: &mut Executor) -> anyhow::Result<()> {
        if !self.roll_back {
            return Ok(());
        }
        let asked = Failure::new(Reason::Conflict, "--roll-back was asked for");
        match executor.fail(asked).await {
            Ok(()) => Ok(()),
            Err(Error::Failed(_)) => {
                let phase = executor.under_way().map(|journal| journal.phase);
                let phase = phase.context("the migration has ended")?;
                bail!(
                    "phase {phase} cannot be undone: run the command without --roll-back, and then one from {} to {}",
                    self.to.join(", "),
                    self.from.join(", ")
                );
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Step after step, until it has ended.
    async fn carry_out(
        &self,
        executor: &mut Executor,
        controllers: &Controllers,
    ) -> anyhow::Result<Report> {
        let display = Display::new(self.quiet);
        let mut report = Report::new(executor);
        let mut step = display.step("migrating");
        loop {
            match executor.advance(controllers).await? {
                Advance::Stepped(phase) => {
                    report.enters(phase);
                    step.update(&report::progress(executor, phase));
                }
                Advance::Waiting(phase, what) => {
                    report.enters(phase);
                    step.update(&format!("{phase}: waiting for {what}"));
                    tokio::time::sleep(MOMENT).await;
                }
                Advance::Blocked(what) => {
                    bail!("the migration is committed and not complete: {what}")
                }
                Advance::Done => {
                    report.ends(executor);
                    step.done(&report.summary());
                    return Ok(report);
                }
                Advance::RolledBack(failure) => return Err(RolledBack(failure).into()),
            }
        }
    }
}
