//! Takes one hosted cluster through its migration: looks, begins or resumes, and does step after step until it ends.

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
use support::error::chain;
use support::shutdown::Drain;
use tokio::time::{Instant, sleep};

use super::candidate::{Attempts, Candidate};
use super::failure::{Trouble, trouble};
use super::mark::{self, Move, make};
use super::queue::Work;
use super::rights;
use super::site::{Before, Site};
use super::tell::{self, Line};
use crate::context::Context;
use crate::control_plane_namespace::{self, ControlPlaneNamespace, Namespace};
use crate::error::Error;
use crate::hosted_cluster::{Id, protocol};

/// Between two looks at something that is waited for.
const POLL: Duration = Duration::from_secs(1);
/// Between two looks at something that a person has to mend.
const LOOK: Duration = Duration::from_secs(30);
/// The condition is not written more often than that, unless the phase changes.
const TELL: Duration = Duration::from_secs(2);
/// How long the API server may refuse to answer before a migration is left to the next turn.
const PATIENCE: Duration = Duration::from_mins(2);
/// How many findings a failure names.
const NAMED: usize = 5;
/// The key under which the journal keeps how many machines there were.
const MACHINES: &str = "machines";

/// How a turn ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The cluster is on the other side.
    Done,
    /// It is where it was, with the reason on it.
    Failed,
    /// Somebody goes on later: this process ends, does not lead, or cannot reach the API server.
    Left,
    /// There was nothing to do: the cluster has changed since it was chosen.
    Undue,
}

/// Why a turn was broken off.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Operator(#[from] Error),
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}

/// One migration under way.
struct Turn<'a> {
    ctx: &'a Context,
    id: &'a Id,
    namespace: &'a ControlPlaneNamespace,
    executor: Executor,
    told: Option<(Line, Instant)>,
    /// The failure that was told.
    failure: Option<Failure>,
}

/// Takes a hosted cluster on. Whatever happens is told on the cluster, or left to the next turn.
pub(super) async fn run(ctx: &Context, id: &Id, work: Work, drain: &Drain) -> Ended {
    let ended = turn(ctx, id, work, drain).await;
    ctx.migrations.metrics.ended(id);
    match ended {
        Ok(ended) => ended,
        Err(error) => {
            tracing::warn!(
                namespace = id.namespace,
                name = id.name,
                error = chain(&error),
                "Migration interrupted"
            );
            Ended::Left
        }
    }
}

async fn turn(ctx: &Context, id: &Id, work: Work, drain: &Drain) -> Result<Ended, Broken> {
    let found = control_plane_namespace::find(&ctx.client, &id.namespace, &id.name).await?;
    let Some(direction) = direction(ctx, id, &found, work).await? else {
        return Ok(Ended::Undue);
    };
    let Some(namespace) = found.owned() else {
        return elsewhere(ctx, id, &found, work).await;
    };
    if work == Work::Reverse
        && let Some(waits) = Site::new(ctx, id, namespace, direction).waits().await?
    {
        tell::waits(ctx, id, waits).await;
        return Ok(Ended::Left);
    }
    let scope = Scope {
        namespaces: vec![namespace.to_string()],
        table: ctx.migrations.settings.groups.clone(),
    };
    let options = Options {
        patience: PATIENCE,
        field_manager: migration::target::FIELD_MANAGER.to_owned(),
        ..Options::default()
    };
    if let Err(error) = rights::take(ctx, namespace).await {
        return powerless(ctx, id, work, direction, error).await;
    }
    let executor = Executor::open(ctx.client.clone(), scope, &options).await?;
    let mut turn = Turn {
        ctx,
        id,
        namespace,
        executor,
        told: None,
        failure: None,
    };
    let ended = match turn.executor.under_way().map(|journal| journal.direction) {
        Some(found) => {
            turn.executor.resume().await?;
            turn.go(found, drain).await
        }
        None if work == Work::Resume => stray(ctx, id).await,
        None => turn.begin(direction, drain).await,
    };
    if let Ok(Ended::Done | Ended::Failed | Ended::Undue) = &ended {
        rights::give_back(ctx, namespace).await?;
    }
    ended
}

/// The rights cannot be had. Unless time mends that, or something is under way, it is told, and a person waited for.
async fn powerless(
    ctx: &Context,
    id: &Id,
    work: Work,
    direction: Direction,
    error: Error,
) -> Result<Ended, Broken> {
    match trouble(&error) {
        Trouble::Lasting(_, told) if work != Work::Resume => {
            let failure = Failure::new(Reason::PermissionDenied, told);
            give_up(ctx, id, direction, failure).await?;
            Ok(Ended::Failed)
        }
        Trouble::Lasting(..) | Trouble::Passing(..) | Trouble::Deposed => Err(error.into()),
    }
}

/// Nothing was begun, or nothing is left of it: the reason is on the cluster.
async fn give_up(
    ctx: &Context,
    id: &Id,
    direction: Direction,
    failure: Failure,
) -> Result<(), Error> {
    tell::failed(ctx, id, &failure).await;
    let Failure { reason, message } = failure;
    let what = match direction {
        Direction::Forward => {
            let metadata = mark::read(ctx, id).await?;
            let attempts = metadata.as_ref().map(Attempts::of).unwrap_or_default();
            Move::GiveUp(reason, message, attempts.and_one(Timestamp::now()))
        }
        Direction::Reverse => Move::GiveUpReverse(reason, message),
    };
    make(ctx, id, &what).await.map(drop)
}

/// Which way, if the cluster still is what it was chosen for.
async fn direction(
    ctx: &Context,
    id: &Id,
    namespace: &Namespace,
    work: Work,
) -> Result<Option<Direction>, Error> {
    let Some(metadata) = mark::read(ctx, id).await? else {
        return Ok(None);
    };
    let evidence = ctx.evidence.of(namespace).await?;
    let verdict = evaluate(&namespace.protocol(protocol(&metadata)), evidence);
    let mut candidate = Candidate::new(id.clone(), &metadata, verdict);
    if !namespace.is_usable() {
        candidate = candidate.refused();
    }
    let is_free = candidate.is_sure && !candidate.is_going;
    Ok(match (work, &candidate.state) {
        // The journal says which way.
        (Work::Resume, MigrationState::Active) => Some(Direction::Forward),
        (Work::Forward | Work::Again, MigrationState::Pending | MigrationState::Failed) => {
            (is_free && !candidate.is_held).then_some(Direction::Forward)
        }
        (Work::Reverse, MigrationState::Done) => {
            (is_free && candidate.is_unwanted).then_some(Direction::Reverse)
        }
        (Work::Resume, MigrationState::Done | MigrationState::Pending | MigrationState::Failed)
        | (Work::Forward | Work::Again, MigrationState::Done | MigrationState::Active)
        | (
            Work::Reverse,
            MigrationState::Pending | MigrationState::Active | MigrationState::Failed,
        ) => None,
    })
}

/// There is no control plane namespace of its own, and so nothing to move. A lock is somebody else's.
async fn elsewhere(
    ctx: &Context,
    id: &Id,
    namespace: &Namespace,
    work: Work,
) -> Result<Ended, Broken> {
    if work == Work::Resume && namespace.is_usable() {
        return stray(ctx, id).await;
    }
    Ok(Ended::Undue)
}

/// A lock without a journal: its migration has ended, or it was written by somebody else.
async fn stray(ctx: &Context, id: &Id) -> Result<Ended, Broken> {
    let Some(metadata) = mark::read(ctx, id).await? else {
        return Ok(Ended::Undue);
    };
    let found = protocol(&metadata);
    if found.private == found.legacy {
        return Ok(Ended::Undue);
    }
    let message = "there is a lock and no journal: somebody else has written the annotation, or the journal is gone";
    let failure = Failure::new(Reason::Conflict, message);
    let direction = if found.private {
        Direction::Reverse
    } else {
        Direction::Forward
    };
    give_up(ctx, id, direction, failure).await?;
    Ok(Ended::Failed)
}

// === impl Turn ===

impl Turn<'_> {
    /// Looks at everything, and begins unless something speaks against it.
    async fn begin(&mut self, direction: Direction, drain: &Drain) -> Result<Ended, Broken> {
        let site = Site::new(self.ctx, self.id, self.namespace, direction);
        let mut problems = site.problems().await?;
        match self.executor.plan(direction).await {
            Ok(plan) => problems.extend(plan.blockers().map(|found| found.message.clone())),
            // What the API server refuses to show it will refuse next time, too.
            Err(ExecutorError::Failed(failure)) if failure.reason.retry() == Retry::OnRequest => {
                give_up(self.ctx, self.id, direction, failure).await?;
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
        } = site.before().await?;
        counts[MACHINES] = machines.into();
        self.executor.begin(direction, counts, health).await?;
        tell::started(self.ctx, self.id, direction, self.ctx.epoch).await;
        self.go(direction, drain).await
    }

    /// Does step after step until the migration ends.
    async fn go(&mut self, direction: Direction, drain: &Drain) -> Result<Ended, Broken> {
        let site = Site::new(self.ctx, self.id, self.namespace, direction);
        if let Some(journal) = self.executor.under_way() {
            let began = Timestamp::from_second(journal.started).unwrap_or_default();
            self.ctx.migrations.metrics.began(self.id, began);
        }
        while !drain.has_begun() {
            let before = self.executor.under_way().cloned();
            let advance = match self.executor.advance(&site).await {
                Ok(advance) => advance,
                // Before the commit it is undone; the executor says so at its next step.
                Err(ExecutorError::Failed(failure)) => {
                    self.stumble(failure).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            match advance {
                Advance::Stepped(_) => self.tell(None).await,
                Advance::Waiting(_, waits) => {
                    self.tell(Some(&waits)).await;
                    sleep(POLL).await;
                }
                Advance::Blocked(for_) => {
                    let phase = before
                        .as_ref()
                        .map_or(Phase::Retire, |journal| journal.phase);
                    self.say(Line::blocked(phase, &for_)).await;
                    sleep(LOOK).await;
                }
                Advance::Done => return Ok(self.done(direction, before.as_ref()).await),
                Advance::RolledBack(failure) => {
                    tell::undone(self.ctx, self.id, &failure).await;
                    return Ok(Ended::Failed);
                }
            }
        }
        Ok(Ended::Left)
    }

    /// A step that could not be done, after all retries.
    async fn stumble(&mut self, failure: Failure) -> Result<(), Broken> {
        match self.executor.fail(failure).await {
            Ok(()) => Ok(()),
            // Past the commit, or on the way back: tried again.
            Err(ExecutorError::Failed(failure)) => {
                self.tell(Some(&failure.to_string())).await;
                sleep(POLL).await;
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
        let metrics = &self.ctx.migrations.metrics;
        match direction {
            Direction::Forward => metrics.migrated(machines, took),
            Direction::Reverse => metrics.reversed(machines, took),
        }
        tell::completed(self.ctx, self.id, direction, took.as_secs()).await;
        Ended::Done
    }

    /// Something speaks against it: nothing is begun, and the reason is on the cluster.
    async fn refuse(&self, direction: Direction, problems: &[String]) -> Result<Ended, Broken> {
        let failure = Failure::new(Reason::PreflightFailed, summary(problems));
        give_up(self.ctx, self.id, direction, failure).await?;
        Ok(Ended::Failed)
    }

    /// Tells where it stands.
    async fn tell(&mut self, waits: Option<&str>) {
        let Some(journal) = self.executor.under_way().cloned() else {
            return;
        };
        let groups = self.executor.groups(journal.direction);
        let progress = Progress::of(&groups, &journal, self.executor.snapshot());
        let line = match &journal.course {
            Course::Forward => Line::phase(&progress, waits),
            Course::Back(failure) => {
                if self.failure.is_none() {
                    tell::failed(self.ctx, self.id, failure).await;
                    self.failure = Some(failure.clone());
                }
                Line::back(&progress, failure, waits)
            }
        };
        self.say(line).await;
    }

    async fn say(&mut self, line: Line) {
        if let Some((told, at)) = &self.told {
            let is_new = !told.is_about_the_same(&line);
            if *told == line || !is_new && at.elapsed() < TELL {
                return;
            }
        }
        tell::condition(self.ctx, self.id, &line).await;
        self.told = Some((line, Instant::now()));
    }
}

/// The problems, not all of them if there are many.
fn summary(problems: &[String]) -> String {
    let mut text = problems
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if let Some(more) = problems.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let _ = write!(text, "; and {more} more: see `hypershift migrate plan`");
    }
    text
}

/// Seconds since 1970.
fn now() -> i64 {
    Timestamp::now().as_second()
}

#[cfg(test)]
mod tests;
