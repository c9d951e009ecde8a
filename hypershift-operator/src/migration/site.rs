//! What a migration needs done that is not about Cluster API objects: the lock, the controllers, the commit.
//!
//! Every task is asked for until it is done, and recognises what was done before: after a crash it is asked for again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::annotations::Protocol;
use api::group::Side;
use jiff::Timestamp;
use migration::failure::Reason;
use migration::groups::Direction;
use migration::journal::{Course, Failure, Journal};
use migration::machine::Task;
use migration_executor::Progress;
use tokio::time::Instant;

use super::candidate::Attempts;
use super::failure::{Trouble, trouble};
use super::handover::{self, Watched};
use super::health::Health;
use super::mark::{self, Made, Move, make};
use super::workloads::{Seen, counts};
use super::{deploy, observe, quiesce};
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;
use crate::hosted_cluster::migrating::{self, Imagined};
use crate::hosted_cluster::{Id, protocol};
use crate::legacy;

/// A hosted cluster under migration.
pub(super) struct Site<'a> {
    ctx: &'a Context,
    id: &'a Id,
    namespace: ControlPlaneNamespace,
    direction: Direction,
    /// How long the cluster has to be well without a break.
    window: Duration,
    /// Since when it has been.
    well: Mutex<Option<Instant>>,
    watched: Watched,
    /// The operators of the target side are written.
    deployed: AtomicBool,
}

/// What is needed before a migration begins.
#[derive(Debug)]
pub(super) struct Before {
    /// Replica counts, for the journal.
    pub(super) counts: serde_json::Value,
    /// How the cluster is, for the journal.
    pub(super) health: serde_json::Value,
    /// How many machines there are.
    pub(super) machines: usize,
}

// === impl Site ===

impl<'a> Site<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        id: &'a Id,
        namespace: &ControlPlaneNamespace,
        direction: Direction,
    ) -> Self {
        Self {
            ctx,
            id,
            namespace: namespace.clone(),
            direction,
            window: ctx.migrations.settings.health_window,
            well: Mutex::default(),
            watched: Watched::default(),
            deployed: AtomicBool::new(false),
        }
    }

    /// What speaks against the migration, beside its objects. Reads only.
    pub(super) async fn problems(&self) -> Result<Vec<String>, Error> {
        let Some(imagined) = self.imagined(self.direction.target()).await? else {
            return Ok(vec!["the HostedCluster is gone".to_owned()]);
        };
        let mut problems = imagined.problems();
        if problems.is_empty()
            && let Err(error) = imagined.operators()
        {
            problems.push(support::error::chain(&error));
        }
        Ok(problems)
    }

    /// What has to come before the migration can begin, in words; nothing if nothing has. Reads only.
    pub(super) async fn waits(&self) -> Result<Option<&'static str>, Error> {
        match self.direction {
            Direction::Forward => Ok(None),
            Direction::Reverse => {
                let running = legacy::running(self.ctx).await?;
                Ok(running.is_none().then_some(
                    "the way back waits for operator-legacy, which takes the cluster over: run `hypershift install \
                     --private-capi-types` again, now that a way back is asked for",
                ))
            }
        }
    }

    /// How things are before the migration. Reads only.
    pub(super) async fn before(&self) -> Result<Before, Error> {
        let seen = quiesce::look(self.ctx, &self.namespace).await?;
        let health = observe::health(self.ctx, &self.namespace, self.direction.source()).await?;
        Ok(Before {
            machines: health.count("Machine"),
            counts: serde_json::json!(counts(&seen)),
            health: serde_json::json!(health),
        })
    }

    async fn imagined(&self, side: Side) -> Result<Option<Imagined>, Error> {
        migrating::imagine(self.id, side, self.ctx).await
    }

    async fn task(&self, task: Task, journal: &Journal) -> Result<Progress, Trouble> {
        match task {
            Task::Lock => self.marked(&Move::Lock).await,
            Task::Quiesce => self.quiesce().await,
            Task::QuiesceAgain => self.stop().await,
            Task::Deploy => self.deploy(journal).await,
            Task::Health => self.health(journal).await,
            Task::Commit => self.marked(&Move::Commit(self.direction.target())).await,
            Task::Finish => self.finish().await,
            Task::RestoreTemplates => self.restore(journal).await,
            Task::ScaleBack => done(quiesce::start(self.ctx, &self.namespace).await),
            Task::Unlock => self.unlock(journal).await,
        }
    }

    /// Makes a move on the HostedCluster.
    async fn marked(&self, what: &Move) -> Result<Progress, Trouble> {
        match make(self.ctx, self.id, what)
            .await
            .map_err(|error| trouble(&error))?
        {
            Made::Yes => Ok(Progress::Done),
            Made::Tampered(found) => Err(tampered(&found)),
            Made::Gone => Err(Trouble::Lasting(
                Reason::Conflict,
                "the HostedCluster is gone".to_owned(),
            )),
        }
    }

    /// Waits until the former owner has stood aside, then stops the controllers.
    async fn quiesce(&self) -> Result<Progress, Trouble> {
        let metadata = mark::read(self.ctx, self.id)
            .await
            .map_err(|error| trouble(&error))?;
        let metadata = metadata.unwrap_or_default();
        let found = protocol(&metadata);
        if !found.in_progress {
            return Err(tampered(&found));
        }
        let waits = handover::waits(self.ctx, self.id, &metadata, &self.watched).await;
        if let Some(waits) = waits.map_err(|error| trouble(&error))? {
            return Ok(Progress::Waiting(waits));
        }
        self.stop().await
    }

    async fn stop(&self) -> Result<Progress, Trouble> {
        let runs = quiesce::stop(self.ctx, &self.namespace).await;
        Ok(waiting(runs.map_err(|error| trouble(&error))?))
    }

    /// Writes the old operators back, once none of the new ones runs any more.
    async fn restore(&self, journal: &Journal) -> Result<Progress, Trouble> {
        if let Progress::Waiting(waits) = self.stop().await? {
            return Ok(Progress::Waiting(waits));
        }
        done(deploy::restore(self.ctx, &self.namespace, &journal.id).await)
    }

    /// Writes the operators of the target side, and waits until they are available.
    async fn deploy(&self, journal: &Journal) -> Result<Progress, Trouble> {
        let target = self.direction.target();
        if !self.deployed.load(Ordering::Relaxed) {
            let written = self.write_operators(target, journal).await;
            written.map_err(|error| trouble(&error))?;
            self.deployed.store(true, Ordering::Relaxed);
        }
        let seen = self.look().await?;
        let with_proxy = target == Side::Private;
        Ok(waiting(seen.iter().find_map(|one| one.waits(with_proxy))))
    }

    async fn write_operators(&self, target: Side, journal: &Journal) -> Result<(), Error> {
        let Some(imagined) = self.imagined(target).await? else {
            return Ok(());
        };
        let plan = imagined.operators()?;
        deploy::change(self.ctx, &self.namespace, &journal.id, plan).await
    }

    /// Well for a while, without a break: no worse than before, all controllers available, none restarted.
    async fn health(&self, journal: &Journal) -> Result<Progress, Trouble> {
        let unwell = self.unwell(journal).await?;
        let mut well = self.well.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(unwell) = unwell {
            *well = None;
            return Ok(Progress::Waiting(unwell));
        }
        let since = *well.get_or_insert_with(Instant::now);
        let left = self.window.saturating_sub(since.elapsed());
        if left.is_zero() {
            return Ok(Progress::Done);
        }
        let left = left.as_secs() + 1;
        Ok(Progress::Waiting(format!(
            "the cluster is no worse than before; it has to stay so for {left} s more"
        )))
    }

    async fn unwell(&self, journal: &Journal) -> Result<Option<String>, Trouble> {
        let target = self.direction.target();
        let seen = self.look().await?;
        let with_proxy = target == Side::Private;
        if let Some(waits) = seen.iter().find_map(|one| one.waits(with_proxy)) {
            return Ok(Some(waits));
        }
        if let Some(restarts) = observe::restarts(&seen) {
            return Ok(Some(restarts));
        }
        let before: Health = serde_json::from_value(journal.health.clone()).unwrap_or_default();
        let now = observe::health(self.ctx, &self.namespace, target).await;
        let now = now.map_err(|error| trouble(&error))?;
        Ok(now.worse_than(&before))
    }

    async fn look(&self) -> Result<Vec<Seen>, Trouble> {
        let seen = quiesce::look(self.ctx, &self.namespace).await;
        seen.map_err(|error| trouble(&error))
    }

    async fn finish(&self) -> Result<Progress, Trouble> {
        done(quiesce::forget(self.ctx, &self.namespace).await)?;
        done(deploy::forget(self.ctx, &self.namespace).await)?;
        self.marked(&Move::Finish(self.direction.target())).await
    }

    async fn unlock(&self, journal: &Journal) -> Result<Progress, Trouble> {
        done(deploy::forget(self.ctx, &self.namespace).await)?;
        let failure = match &journal.course {
            Course::Back(failure) => failure.clone(),
            Course::Forward => Failure::new(Reason::Conflict, "it was undone"),
        };
        let what = self.given_up(failure).await?;
        self.marked(&what).await
    }

    /// How a failure is told on the HostedCluster.
    async fn given_up(&self, failure: Failure) -> Result<Move, Trouble> {
        let Failure { reason, message } = failure;
        if self.direction == Direction::Reverse {
            return Ok(Move::GiveUpReverse(reason, message));
        }
        let attempts = self.attempts().await.map_err(|error| trouble(&error))?;
        Ok(Move::GiveUp(
            reason,
            message,
            attempts.and_one(Timestamp::now()),
        ))
    }

    async fn attempts(&self) -> Result<Attempts, Error> {
        let metadata = mark::read(self.ctx, self.id).await?;
        Ok(metadata.as_ref().map(Attempts::of).unwrap_or_default())
    }
}

impl migration_executor::Hooks for Site<'_> {
    async fn perform(&self, task: Task, journal: &Journal) -> Result<Progress, Failure> {
        match self.task(task, journal).await {
            Ok(progress) => Ok(progress),
            Err(Trouble::Passing(reason, told)) => {
                Ok(Progress::Waiting(format!("{told} ({reason})")))
            }
            Err(Trouble::Lasting(reason, told)) => Err(Failure::new(reason, told)),
            // Nothing can be written any more, and nothing is to be: whoever leads now goes on.
            Err(Trouble::Deposed) => Ok(Progress::Waiting("this process does not lead".to_owned())),
        }
    }
}

impl std::fmt::Debug for Site<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site")
            .field("id", self.id)
            .finish_non_exhaustive()
    }
}

fn done(result: Result<(), Error>) -> Result<Progress, Trouble> {
    result
        .map(|()| Progress::Done)
        .map_err(|error| trouble(&error))
}

fn waiting(for_: Option<String>) -> Progress {
    for_.map_or(Progress::Done, Progress::Waiting)
}

fn tampered(found: &Protocol) -> Trouble {
    let Protocol {
        private,
        legacy,
        in_progress,
        failed: _,
    } = found;
    Trouble::Lasting(
        Reason::Conflict,
        format!(
            "somebody has changed the annotations of the HostedCluster meanwhile (private {private}, legacy {legacy}, \
             in progress {in_progress})"
        ),
    )
}
