//! Migrates one HostedCluster: preflight checks, begin or resume, then step by step until it ends.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use migration::failure::{Reason, Retry};
use migration::groups::Direction;
use migration::journal::{Course, Failure, Journal};
use migration::phase::Phase;
use migration::progress::Progress;
use migration_executor::{Advance, Error as ExecutorError, Executor, Options, Scope};
use ownership::{MigrationState, evaluate};
use support::controller::span;
use support::error::chain;
use support::shutdown::Drain;
use tokio::time::{Instant, sleep};
use tracing::Instrument as _;

use super::annotations::{self, Transition, apply_transition};
use super::candidate::{Attempts, Candidate};
use super::control::Migrations;
use super::failure::{HookError, classify};
use super::hooks::{Before, ClusterHooks};
use super::permissions;
use super::queue::Work;
use super::report::{self, ConditionMessage};
use crate::cluster_ref::{Id, protocol};
use crate::context::Context;
use crate::control_plane_namespace::{self, ControlPlaneNamespace, Namespace};
use crate::error::Error;

/// Poll interval of a step that waits.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Poll interval of a step that needs user action.
const BLOCKED_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The condition is not updated more often, unless the phase changes.
const CONDITION_INTERVAL: Duration = Duration::from_secs(2);
/// How long the API server may be unavailable before a migration is interrupted.
const API_TIMEOUT: Duration = Duration::from_mins(2);
/// How many problems a failure message lists.
const MAX_PROBLEMS: usize = 5;
/// The key of the number of machines in the journal.
const MACHINES: &str = "machines";

/// How a run ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The migration is complete.
    Done,
    /// The cluster is on its previous types, and the reason is recorded.
    Failed,
    /// It continues later: this process ends, is not the leader, or cannot reach the API server.
    Interrupted,
    /// There is nothing to do: the cluster has changed since it was selected.
    NotNeeded,
}

/// Why a run was interrupted.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Operator(#[from] Error),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

/// One migration in progress.
struct MigrationRun<'a> {
    ctx: &'a Context,
    migrations: &'a Migrations,
    id: &'a Id,
    namespace: &'a ControlPlaneNamespace,
    executor: Executor,
    reported: Option<(ConditionMessage, Instant)>,
    /// The failure that was reported.
    failure: Option<Failure>,
}

/// Migrates a hosted cluster. The result is recorded on the cluster, or left to the next run.
pub(super) async fn run(
    ctx: &Context,
    migrations: &Migrations,
    id: &Id,
    work: Work,
    drain: &Drain,
) -> Ended {
    // It may take hours, so it is not a pass with a deadline.
    let run = async {
        let ended = run_once(ctx, migrations, id, work, drain).await;
        migrations.set_blocked(id, false);
        migrations.metrics.ended(id);
        ended.unwrap_or_else(|error| {
            tracing::warn!(
                namespace = id.namespace,
                name = id.name,
                error = chain(&error),
                "Migration interrupted"
            );
            Ended::Interrupted
        })
    };
    run.instrument(span("migration")).await
}

async fn run_once(
    ctx: &Context,
    migrations: &Migrations,
    id: &Id,
    work: Work,
    drain: &Drain,
) -> Result<Ended, RunError> {
    let found = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let Some(direction) = direction(ctx, id, &found, work).await? else {
        return Ok(Ended::NotNeeded);
    };
    let Some(namespace) = found.owned() else {
        return without_namespace(ctx, id, &found, work).await;
    };
    if work == Work::Reverse
        && let Some(waits) = ClusterHooks::new(
            ctx,
            id,
            namespace,
            direction,
            migrations.settings.health_window,
        )
        .waits()
        .await?
    {
        report::waiting(ctx, id, waits).await;
        return Ok(Ended::Interrupted);
    }
    let scope = Scope {
        namespaces: vec![namespace.to_string()],
        table: migrations.settings.groups.clone(),
    };
    let options = Options {
        patience: API_TIMEOUT,
        field_manager: migration::target::FIELD_MANAGER.to_owned(),
        ..Options::default()
    };
    if let Err(error) = permissions::grant(ctx, &migrations.settings.groups, namespace).await {
        return missing_permissions(ctx, id, work, direction, error).await;
    }
    let executor = Executor::open(ctx.client.clone(), scope, &options).await?;
    let mut run = MigrationRun {
        ctx,
        migrations,
        id,
        namespace,
        executor,
        reported: None,
        failure: None,
    };
    let ended = match run.executor.under_way().map(|journal| journal.direction) {
        Some(found) => {
            run.executor.resume().await?;
            run.go(found, drain).await
        }
        None if work == Work::Resume => orphaned_lock(ctx, id).await,
        None => run.begin(direction, drain).await,
    };
    if let Ok(Ended::Done | Ended::Failed | Ended::NotNeeded) = &ended {
        permissions::revoke(ctx, namespace).await?;
    }
    ended
}

/// The permissions are missing. Unless that is transient, or a migration is in progress, the failure is recorded.
async fn missing_permissions(
    ctx: &Context,
    id: &Id,
    work: Work,
    direction: Direction,
    error: Error,
) -> Result<Ended, RunError> {
    match classify(&error) {
        HookError::Permanent(_, reported) if work != Work::Resume => {
            let failure = Failure::new(Reason::PermissionDenied, reported);
            record_failure(ctx, id, direction, failure).await?;
            Ok(Ended::Failed)
        }
        HookError::Permanent(..) | HookError::Transient(..) | HookError::NotLeading => {
            Err(error.into())
        }
    }
}

/// Nothing was begun, or everything was rolled back: records the reason.
async fn record_failure(
    ctx: &Context,
    id: &Id,
    direction: Direction,
    failure: Failure,
) -> Result<(), Error> {
    report::failed(ctx, id, &failure).await;
    let Failure { reason, message } = failure;
    let what = match direction {
        Direction::Forward => {
            let metadata = annotations::read(ctx, id).await?;
            let attempts = metadata.as_ref().map(Attempts::of).unwrap_or_default();
            Transition::GiveUp(reason, message, attempts.and_one(Timestamp::now()))
        }
        Direction::Reverse => Transition::GiveUpReverse(reason, message),
    };
    apply_transition(ctx, id, &what).await.map(drop)
}

/// The direction, if the cluster still has the state that it was selected for.
async fn direction(
    ctx: &Context,
    id: &Id,
    namespace: &Namespace,
    work: Work,
) -> Result<Option<Direction>, Error> {
    let Some(metadata) = annotations::read(ctx, id).await? else {
        return Ok(None);
    };
    let observed_groups = ctx.observed_groups.of(namespace).await?;
    let evaluation = evaluate(&namespace.protocol(protocol(&metadata)), observed_groups);
    let mut candidate = Candidate::new(id.clone(), &metadata, evaluation);
    if !namespace.is_usable() {
        candidate = candidate.refused();
    }
    let is_free = candidate.is_consistent && !candidate.is_deleting;
    Ok(match (work, &candidate.state) {
        // The journal has the direction.
        (Work::Resume, MigrationState::Active) => Some(Direction::Forward),
        (Work::Forward | Work::Again, MigrationState::Pending | MigrationState::Failed) => {
            (is_free && !candidate.is_held).then_some(Direction::Forward)
        }
        (Work::Reverse, MigrationState::Done) => {
            (is_free && candidate.is_rollback_requested).then_some(Direction::Reverse)
        }
        (Work::Resume, MigrationState::Done | MigrationState::Pending | MigrationState::Failed)
        | (Work::Forward | Work::Again, MigrationState::Done | MigrationState::Active)
        | (
            Work::Reverse,
            MigrationState::Pending | MigrationState::Active | MigrationState::Failed,
        ) => None,
    })
}

/// The cluster has no control plane namespace, so there is nothing to migrate. A lock is from another client.
async fn without_namespace(
    ctx: &Context,
    id: &Id,
    namespace: &Namespace,
    work: Work,
) -> Result<Ended, RunError> {
    if work == Work::Resume && namespace.is_usable() {
        return orphaned_lock(ctx, id).await;
    }
    Ok(Ended::NotNeeded)
}

/// A lock without a journal: its migration has ended, or another client set it.
async fn orphaned_lock(ctx: &Context, id: &Id) -> Result<Ended, RunError> {
    let Some(metadata) = annotations::read(ctx, id).await? else {
        return Ok(Ended::NotNeeded);
    };
    let found = protocol(&metadata);
    if found.private == found.legacy {
        return Ok(Ended::NotNeeded);
    }
    let message = "the HostedCluster has a migration lock, and no journal exists: another client set the annotation, \
                   or deleted the journal";
    let failure = Failure::new(Reason::Conflict, message);
    let direction = if found.private {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    record_failure(ctx, id, direction, failure).await?;
    Ok(Ended::Failed)
}

// === impl MigrationRun ===

impl<'a> MigrationRun<'a> {
    fn hooks(&self, direction: Direction) -> ClusterHooks<'a> {
        let window = self.migrations.settings.health_window;
        ClusterHooks::new(self.ctx, self.id, self.namespace, direction, window)
    }

    /// Runs the preflight checks, and begins if all pass.
    async fn begin(&mut self, direction: Direction, drain: &Drain) -> Result<Ended, RunError> {
        let hooks = self.hooks(direction);
        let mut problems = hooks.problems().await?;
        match self.executor.plan(direction).await {
            Ok(plan) => problems.extend(plan.blockers().map(|found| found.message.clone())),
            // A forbidden read stays forbidden: no retry.
            Err(ExecutorError::Failed(failure)) if failure.reason.retry() == Retry::OnRequest => {
                record_failure(self.ctx, self.id, direction, failure).await?;
                return Ok(Ended::Failed);
            }
            Err(error) => return Err(error.into()),
        }
        if !problems.is_empty() {
            return self.refuse(direction, &problems).await;
        }
        let Before {
            mut counts,
            health,
            machines,
        } = hooks.before().await?;
        counts[MACHINES] = machines.into();
        self.executor.begin(direction, counts, health).await?;
        report::started(self.ctx, self.id, direction, self.ctx.epoch).await;
        self.go(direction, drain).await
    }

    /// Runs steps until the migration ends.
    async fn go(&mut self, direction: Direction, drain: &Drain) -> Result<Ended, RunError> {
        let hooks = self.hooks(direction);
        if let Some(journal) = self.executor.under_way() {
            let began = Timestamp::from_second(journal.started).unwrap_or_default();
            self.migrations.metrics.began(self.id, began);
        }
        while !drain.has_begun() {
            let before = self.executor.under_way().cloned();
            let advance = match self.executor.advance(&hooks).await {
                Ok(advance) => advance,
                // Before the commit it is rolled back; the executor reports that at its next step.
                Err(ExecutorError::Failed(failure)) => {
                    self.handle_step_error(failure).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let is_blocked = matches!(advance, Advance::Blocked(_));
            self.migrations.set_blocked(self.id, is_blocked);
            match advance {
                Advance::Stepped(_) => self.report_progress(None).await,
                Advance::Waiting(_, waits) => {
                    self.report_progress(Some(&waits)).await;
                    sleep(POLL_INTERVAL).await;
                }
                Advance::Blocked(for_) => {
                    let phase = before
                        .as_ref()
                        .map_or(Phase::Retire, |journal| journal.phase);
                    self.update_condition(ConditionMessage::blocked(phase, &for_))
                        .await;
                    sleep(BLOCKED_POLL_INTERVAL).await;
                }
                Advance::Done => return Ok(self.done(direction, before.as_ref()).await),
                Advance::RolledBack(failure) => {
                    report::rolled_back(self.ctx, self.id, &failure).await;
                    return Ok(Ended::Failed);
                }
            }
        }
        Ok(Ended::Interrupted)
    }

    /// Handles a step that failed after all retries.
    async fn handle_step_error(&mut self, failure: Failure) -> Result<(), RunError> {
        match self.executor.fail(failure).await {
            Ok(()) => Ok(()),
            // After the commit, or during a rollback: retried.
            Err(ExecutorError::Failed(failure)) => {
                self.report_progress(Some(&failure.to_string())).await;
                sleep(POLL_INTERVAL).await;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn done(&self, direction: Direction, journal: Option<&Journal>) -> Ended {
        let took = journal.map_or(0, |journal| now() - journal.started);
        let took = Duration::from_secs(u64::try_from(took).unwrap_or_default());
        let machines = journal.and_then(|journal| journal.counts[MACHINES].as_u64());
        let machines = usize::try_from(machines.unwrap_or_default()).unwrap_or_default();
        let metrics = &self.migrations.metrics;
        match direction {
            Direction::Forward => metrics.migrated(machines, took),
            Direction::Reverse => metrics.reversed(machines, took),
        }
        report::completed(self.ctx, self.id, direction, took.as_secs()).await;
        Ended::Done
    }

    /// Preflight checks failed: records the reason.
    async fn refuse(&self, direction: Direction, problems: &[String]) -> Result<Ended, RunError> {
        let failure = Failure::new(Reason::PreflightFailed, summary(problems));
        record_failure(self.ctx, self.id, direction, failure).await?;
        Ok(Ended::Failed)
    }

    /// Reports progress.
    async fn report_progress(&mut self, waits: Option<&str>) {
        let Some(journal) = self.executor.under_way().cloned() else {
            return;
        };
        let groups = self.executor.groups(journal.direction);
        let progress = Progress::of(&groups, &journal, self.executor.snapshot());
        let line = match &journal.course {
            Course::Forward => ConditionMessage::phase(&progress, waits),
            Course::Back(failure) => {
                if self.failure.is_none() {
                    report::failed(self.ctx, self.id, failure).await;
                    self.failure = Some(failure.clone());
                }
                ConditionMessage::back(&progress, failure, waits)
            }
        };
        self.update_condition(line).await;
    }

    async fn update_condition(&mut self, line: ConditionMessage) {
        if let Some((reported, at)) = &self.reported {
            let is_new = !reported.is_about_the_same(&line);
            if *reported == line || !is_new && at.elapsed() < CONDITION_INTERVAL {
                return;
            }
        }
        report::condition(self.ctx, self.id, &line).await;
        self.reported = Some((line, Instant::now()));
    }
}

/// A list of the first problems.
fn summary(problems: &[String]) -> String {
    let mut text = problems
        .iter()
        .take(MAX_PROBLEMS)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if let Some(more) = problems
        .len()
        .checked_sub(MAX_PROBLEMS)
        .filter(|more| *more > 0)
    {
        let _ = write!(text, "; and {more} more: run `hypershift migrate plan`");
    }
    text
}

/// Seconds since 1970.
fn now() -> i64 {
    Timestamp::now().as_second()
}

#[cfg(test)]
mod tests;
