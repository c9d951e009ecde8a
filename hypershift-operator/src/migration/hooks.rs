//! The hooks of a migration: what is not about Cluster API objects (lock, controllers, commit).
//!
//! Every task is called until it is complete, and is idempotent: after a crash it is called again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::annotations::Protocol;
use api::group::CapiTypes;
use jiff::Timestamp;
use migration::failure::Reason;
use migration::groups::Direction;
use migration::journal::{Course, Failure, Journal};
use migration::machine::Task;
use migration_executor::Progress;
use tokio::time::Instant;

use super::annotations::{self, Made, Transition, apply_transition};
use super::candidate::Attempts;
use super::failure::{HookError, classify};
use super::handover::{self, LeaseObserver};
use super::health::Health;
use super::workloads::{ObservedDeployment, counts};
use super::{deploy, observe, quiesce};
use crate::cluster_ref::{Id, protocol};
use crate::context::Context;
use crate::control_plane_namespace::ControlPlaneNamespace;
use crate::error::Error;
use crate::hosted_cluster::rendering::{self, Rendered};
use crate::legacy;

/// The hooks for one HostedCluster.
pub(super) struct ClusterHooks<'a> {
    ctx: &'a Context,
    id: &'a Id,
    namespace: ControlPlaneNamespace,
    direction: Direction,
    /// How long the cluster has to stay healthy.
    window: Duration,
    /// Since when it is healthy.
    well: Mutex<Option<Instant>>,
    watched: LeaseObserver,
    /// The operators of the target types are written.
    deployed: AtomicBool,
}

/// The state before a migration.
#[derive(Debug)]
pub(super) struct Before {
    /// Replica counts, for the journal.
    pub(super) counts: serde_json::Value,
    /// The health, for the journal.
    pub(super) health: serde_json::Value,
    /// How many machines there are.
    pub(super) machines: usize,
}

// === impl ClusterHooks ===

impl<'a> ClusterHooks<'a> {
    pub(super) fn new(
        ctx: &'a Context,
        id: &'a Id,
        namespace: &ControlPlaneNamespace,
        direction: Direction,
        window: Duration,
    ) -> Self {
        Self {
            ctx,
            id,
            namespace: namespace.clone(),
            direction,
            window,
            well: Mutex::default(),
            watched: LeaseObserver::default(),
            deployed: AtomicBool::new(false),
        }
    }

    /// Problems that block the migration, except of its objects. Reads only.
    pub(super) async fn problems(&self) -> Result<Vec<String>, Error> {
        let Some(rendered) = self.rendered(self.direction.target()).await? else {
            return Ok(vec!["the HostedCluster does not exist".to_owned()]);
        };
        let mut problems = rendered.problems();
        if problems.is_empty()
            && let Err(error) = rendered.operators()
        {
            problems.push(support::error::chain(&error));
        }
        Ok(problems)
    }

    /// What the migration waits for before it begins; `None` if nothing. Reads only.
    pub(super) async fn waits(&self) -> Result<Option<&'static str>, Error> {
        match self.direction {
            Direction::Forward => Ok(None),
            Direction::Reverse => {
                let running = legacy::running(self.ctx).await?;
                Ok(running.is_none().then_some(
                    "Waiting for operator-legacy, which takes over the cluster: run `hypershift install --private-capi-types` again to install it",
                ))
            }
        }
    }

    /// The state before the migration. Reads only.
    pub(super) async fn before(&self) -> Result<Before, Error> {
        let seen = quiesce::list_deployments(self.ctx, &self.namespace).await?;
        let health = observe::health(self.ctx, &self.namespace, self.direction.source()).await?;
        Ok(Before {
            machines: health.count("Machine"),
            counts: serde_json::json!(counts(&seen)),
            health: serde_json::json!(health),
        })
    }

    async fn rendered(&self, types: CapiTypes) -> Result<Option<Rendered>, Error> {
        rendering::render_for(self.id, types, self.ctx).await
    }

    async fn task(&self, task: Task, journal: &Journal) -> Result<Progress, HookError> {
        match task {
            Task::Lock => self.transition(&Transition::Lock).await,
            Task::Quiesce => self.quiesce().await,
            Task::QuiesceAgain => self.stop().await,
            Task::Deploy => self.deploy(journal).await,
            Task::Health => self.health(journal).await,
            Task::Commit => {
                self.transition(&Transition::Commit(self.direction.target()))
                    .await
            }
            Task::Finish => self.finish().await,
            Task::RestoreTemplates => self.restore(journal).await,
            Task::ScaleBack => done(quiesce::start(self.ctx, &self.namespace).await),
            Task::Unlock => self.unlock(journal).await,
        }
    }

    /// Applies a transition to the HostedCluster.
    async fn transition(&self, what: &Transition) -> Result<Progress, HookError> {
        match apply_transition(self.ctx, self.id, what)
            .await
            .map_err(|error| classify(&error))?
        {
            Made::Yes => Ok(Progress::Done),
            Made::Tampered(found) => Err(tampered(&found)),
            Made::Gone => Err(HookError::Permanent(
                Reason::Conflict,
                "the HostedCluster does not exist".to_owned(),
            )),
        }
    }

    /// Waits until the former owner acknowledged the lock, then stops the controllers.
    async fn quiesce(&self) -> Result<Progress, HookError> {
        let metadata = annotations::read(self.ctx, self.id)
            .await
            .map_err(|error| classify(&error))?;
        let metadata = metadata.unwrap_or_default();
        let found = protocol(&metadata);
        if !found.in_progress {
            return Err(tampered(&found));
        }
        let waits = handover::waits(self.ctx, self.id, &metadata, &self.watched).await;
        if let Some(waits) = waits.map_err(|error| classify(&error))? {
            return Ok(Progress::Waiting(waits));
        }
        self.stop().await
    }

    async fn stop(&self) -> Result<Progress, HookError> {
        let runs = quiesce::stop(self.ctx, &self.namespace).await;
        Ok(waiting(runs.map_err(|error| classify(&error))?))
    }

    /// Restores the previous operators after the new ones have stopped.
    async fn restore(&self, journal: &Journal) -> Result<Progress, HookError> {
        if let Progress::Waiting(waits) = self.stop().await? {
            return Ok(Progress::Waiting(waits));
        }
        done(deploy::restore(self.ctx, &self.namespace, &journal.id).await)
    }

    /// Writes the operators of the target types, and waits until they are available.
    async fn deploy(&self, journal: &Journal) -> Result<Progress, HookError> {
        let target = self.direction.target();
        if !self.deployed.load(Ordering::Relaxed) {
            let written = self.write_operators(target, journal).await;
            written.map_err(|error| classify(&error))?;
            self.deployed.store(true, Ordering::Relaxed);
        }
        let seen = self.look().await?;
        let with_proxy = target == CapiTypes::Private;
        Ok(waiting(
            seen.iter().find_map(|one| one.waiting_for(with_proxy)),
        ))
    }

    async fn write_operators(&self, target: CapiTypes, journal: &Journal) -> Result<(), Error> {
        let Some(rendered) = self.rendered(target).await? else {
            return Ok(());
        };
        let plan = rendered.operators()?;
        deploy::change(self.ctx, &self.namespace, &journal.id, plan).await
    }

    /// Waits until the cluster stays healthy for the window: not less than before, controllers available, no restarts.
    async fn health(&self, journal: &Journal) -> Result<Progress, HookError> {
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
            "Waiting for the cluster to stay healthy for {left} s more"
        )))
    }

    async fn unwell(&self, journal: &Journal) -> Result<Option<String>, HookError> {
        let target = self.direction.target();
        let seen = self.look().await?;
        let with_proxy = target == CapiTypes::Private;
        if let Some(waits) = seen.iter().find_map(|one| one.waiting_for(with_proxy)) {
            return Ok(Some(waits));
        }
        if let Some(restarts) = observe::restarts(&seen) {
            return Ok(Some(restarts));
        }
        let before: Health = serde_json::from_value(journal.health.clone()).unwrap_or_default();
        let now = observe::health(self.ctx, &self.namespace, target).await;
        let now = now.map_err(|error| classify(&error))?;
        Ok(now.worse_than(&before))
    }

    async fn look(&self) -> Result<Vec<ObservedDeployment>, HookError> {
        let seen = quiesce::list_deployments(self.ctx, &self.namespace).await;
        seen.map_err(|error| classify(&error))
    }

    async fn finish(&self) -> Result<Progress, HookError> {
        done(quiesce::forget(self.ctx, &self.namespace).await)?;
        done(deploy::forget(self.ctx, &self.namespace).await)?;
        self.transition(&Transition::Finish(self.direction.target()))
            .await
    }

    async fn unlock(&self, journal: &Journal) -> Result<Progress, HookError> {
        done(deploy::forget(self.ctx, &self.namespace).await)?;
        let failure = match &journal.course {
            Course::Back(failure) => failure.clone(),
            Course::Forward => Failure::new(Reason::Conflict, "it was rolled back"),
        };
        let what = self.given_up(failure).await?;
        self.transition(&what).await
    }

    /// The transition that records a failure on the HostedCluster.
    async fn given_up(&self, failure: Failure) -> Result<Transition, HookError> {
        let Failure { reason, message } = failure;
        if self.direction == Direction::Reverse {
            return Ok(Transition::GiveUpReverse(reason, message));
        }
        let attempts = self.attempts().await.map_err(|error| classify(&error))?;
        Ok(Transition::GiveUp(
            reason,
            message,
            attempts.and_one(Timestamp::now()),
        ))
    }

    async fn attempts(&self) -> Result<Attempts, Error> {
        let metadata = annotations::read(self.ctx, self.id).await?;
        Ok(metadata.as_ref().map(Attempts::of).unwrap_or_default())
    }
}

impl migration_executor::Hooks for ClusterHooks<'_> {
    async fn perform(&self, task: Task, journal: &Journal) -> Result<Progress, Failure> {
        match self.task(task, journal).await {
            Ok(progress) => Ok(progress),
            Err(HookError::Transient(reason, message)) => {
                Ok(Progress::Waiting(format!("{message} ({reason})")))
            }
            Err(HookError::Permanent(reason, message)) => Err(Failure::new(reason, message)),
            // Nothing can be written any more: the new leader continues.
            Err(HookError::NotLeading) => Ok(Progress::Waiting(
                "this process is not the leader".to_owned(),
            )),
        }
    }
}

impl std::fmt::Debug for ClusterHooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterHooks")
            .field("id", self.id)
            .finish_non_exhaustive()
    }
}

fn done(result: Result<(), Error>) -> Result<Progress, HookError> {
    result
        .map(|()| Progress::Done)
        .map_err(|error| classify(&error))
}

fn waiting(for_: Option<String>) -> Progress {
    for_.map_or(Progress::Done, Progress::Waiting)
}

fn tampered(found: &Protocol) -> HookError {
    let Protocol {
        private,
        legacy,
        in_progress,
        failed: _,
    } = found;
    HookError::Permanent(
        Reason::Conflict,
        format!(
            "another client changed the annotations of the HostedCluster during the migration (private {private}, legacy {legacy}, in progress {in_progress})"
        ),
    )
}
