//! Carries out what [`migration::machine`] decides, on an API server: the only part of a migration with a client.
//!
//! It knows groups and namespaces, and no hosted clusters: those are behind the [`Hooks`] that its caller implements.
//!
//! ```text
//!  open > begin or resume > advance, advance, ... > Done or RolledBack
//!                             |
//!                             '- one step each: a wave of writes, a task of the hooks, or an entry of the journal
//! ```

#![deny(missing_docs)]

mod calls;
mod counts;
mod facts;
#[cfg_attr(
    not(feature = "fault-injection"),
    expect(
        dead_code,
        unreachable_pub,
        reason = "without the feature, nothing is injected"
    )
)]
mod fault_injection;
mod hooks;
mod reading;
mod response;
mod store;
mod writes;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::group::GroupTable;
use serde_json::Value;

use calls::Calls;
use fault_injection::FaultPoints;
#[cfg(not(feature = "fault-injection"))]
use fault_injection::{Operation, Position};
use migration::groups::{Direction, Groups};
use migration::journal::{Course, Failure, Journal, Unreadable};
use migration::machine::{self, Observation, SiteState, Step, Wave};
use migration::phase::Phase;
use migration::plan::Plan;
use migration::snapshot::Snapshot;
use store::Store;
use writes::Writes;

pub use counts::Counts;
#[cfg(feature = "fault-injection")]
pub use fault_injection::{Abort, FaultInjector, Operation, Position};
pub use hooks::{Hooks, Progress};
pub use store::{Entry, NAME as JOURNAL_NAME, Outcome};

/// What is moved.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The namespaces, at least one; the journal is kept in the first.
    pub namespaces: Vec<String>,
    /// The pairs of groups.
    pub table: GroupTable,
}

/// How it is moved.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many writes are under way at a time.
    pub parallel: usize,
    /// How long a request is tried again when the API server is overloaded or away.
    pub patience: Duration,
    /// The field manager of writes.
    pub field_manager: String,
    /// Ends the migration in tests.
    #[cfg(feature = "fault-injection")]
    pub fault_injector: Option<std::sync::Arc<dyn FaultInjector>>,
}

/// One migration, or the chance of one.
#[derive(Debug)]
pub struct Executor {
    scope: Scope,
    calls: Calls,
    store: Store,
    writes: Writes,
    entry: Option<Entry>,
    site: SiteState,
    snapshot: Snapshot,
    /// Whether the snapshot is current, apart from changes of other clients.
    fresh: bool,
    faults: FaultPoints,
}

/// The result of one [`Executor::advance`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// Something was done; continue at once.
    Stepped(Phase),
    /// Something is waited for: continue after a moment.
    Waiting(Phase, String),
    /// Past the commit, an administrator has to resolve a problem.
    Blocked(String),
    /// The migration is complete.
    Done,
    /// The migration has been undone, for this reason.
    RolledBack(Failure),
}

/// How many objects have a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Objects of the groups that are moved from.
    pub originals: usize,
    /// Objects of the groups that are moved to.
    pub targets: usize,
}

/// Why an executor cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be done now.
    #[error(transparent)]
    Failed(Failure),
    /// Another process has taken the migration over: this one writes nothing any more.
    #[error("another process has taken this migration over: this one writes nothing any more")]
    Replaced,
    /// A `FaultInjector` ended it.
    #[cfg(feature = "fault-injection")]
    #[error("the migration was aborted by fault injection")]
    Aborted,
    /// A journal that is not ours, or damaged.
    #[error("cannot read {name}")]
    Unreadable {
        /// The ConfigMap.
        name: String,
        /// What is wrong with it.
        source: Unreadable,
    },
    /// There is a migration under way.
    #[error("a migration of this namespace is under way, in phase {0}: resume it, or roll it back")]
    UnderWay(Phase),
    /// There is none.
    #[error("no migration of this namespace is under way: there is nothing to resume")]
    NoneUnderWay,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            parallel: 16,
            patience: Duration::from_mins(2),
            field_manager: "hypershift-migration".to_owned(),
            #[cfg(feature = "fault-injection")]
            fault_injector: None,
        }
    }
}

// === impl Executor ===

impl Executor {
    /// Reads whether a migration is in progress. Writes nothing.
    pub async fn open(
        client: kube::Client,
        scope: Scope,
        options: &Options,
    ) -> Result<Self, Error> {
        let calls = Calls::new(client, options.patience, &options.field_manager);
        let mut store = Store::new(calls.clone(), &scope.namespaces[0]);
        let entry = store.read().await?;
        Ok(Self {
            scope,
            writes: Writes::new(calls.clone(), options),
            calls,
            store,
            entry,
            site: SiteState::NotAsked,
            snapshot: Snapshot::new(),
            fresh: false,
            faults: FaultPoints::new(options),
        })
    }

    /// The journal: of the migration under way, or of the last one.
    pub fn entry(&self) -> Option<&Entry> {
        self.entry.as_ref()
    }

    /// The journal of the migration under way.
    pub fn under_way(&self) -> Option<&Journal> {
        let entry = self.entry.as_ref()?;
        entry.outcome.is_none().then_some(&entry.journal)
    }

    /// The objects as they were read last.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The requests to the API server so far.
    pub fn counts(&self) -> Counts {
        self.calls.tally.counts()
    }

    /// How many objects the last migration moved.
    pub fn moved(&self) -> usize {
        self.entry.as_ref().map_or(0, |entry| {
            let groups = self.groups(entry.journal.direction);
            let objects = self.snapshot.objects();
            let targets = objects.filter(|object| groups.is_target(&object.key().group));
            targets.count()
        })
    }

    /// How many objects have a target, as far as is known.
    pub fn copied(&self) -> Copied {
        let Some(journal) = self.under_way() else {
            return Copied::default();
        };
        let groups = self.groups(journal.direction);
        let mut copied = Copied::default();
        for object in self.snapshot.objects() {
            let group = &object.key().group;
            copied.originals += usize::from(groups.is_source(group));
            copied.targets += usize::from(groups.is_target(group));
        }
        copied
    }

    /// The pairs of groups and the way between them.
    pub fn groups(&self, direction: Direction) -> Groups {
        Groups::new(self.scope.table.clone(), direction)
    }

    /// Reads everything, for a plan. Writes nothing.
    pub async fn survey(&mut self, direction: Direction) -> Result<&Snapshot, Error> {
        let groups = self.groups(direction);
        let read = reading::snapshot(&self.calls, &groups, &self.scope.namespaces);
        self.snapshot = read.await.map_err(Error::Failed)?;
        Ok(&self.snapshot)
    }

    /// Reads everything, and what the server says beside: a dry run. Writes nothing.
    pub async fn plan(&mut self, direction: Direction) -> Result<Plan, Error> {
        let groups = self.groups(direction);
        self.survey(direction).await?;
        let facts = facts::facts(&self.calls, &groups, &self.snapshot, &self.scope.namespaces);
        let facts = facts.await.map_err(Error::Failed)?;
        Ok(Plan::new(&groups, &self.snapshot, &facts))
    }

    /// Begins a migration by writing its journal; `counts` and `health` are those of the hooks.
    pub async fn begin(
        &mut self,
        direction: Direction,
        counts: Value,
        health: Value,
    ) -> Result<(), Error> {
        if let Some(journal) = self.under_way() {
            return Err(Error::UnderWay(journal.phase));
        }
        let fence = self.entry.as_ref().map_or(0, |entry| entry.journal.fence) + 1;
        let id = uuid::Uuid::new_v4().to_string();
        let mut journal = Journal::begin(id, direction, fence, now());
        journal.counts = counts;
        journal.health = health;
        self.record(journal, None).await
    }

    /// Takes over the migration in progress: the process that ran it before notices, and stops.
    pub async fn resume(&mut self) -> Result<(), Error> {
        let mut journal = self.under_way().cloned().ok_or(Error::NoneUnderWay)?;
        journal.fence += 1;
        self.record(journal, None).await
    }

    /// Rolls the migration in progress back.
    pub async fn fail(&mut self, failure: Failure) -> Result<(), Error> {
        let journal = self.under_way().ok_or(Error::NoneUnderWay)?;
        let failing = journal.fail(failure.clone(), now());
        match failing {
            Ok(journal) if journal.course != self.course() => self.record(journal, None).await,
            // Past the commit, or being rolled back already: it is retried.
            Ok(_) | Err(_) => Err(Error::Failed(failure)),
        }
    }

    /// Does one step.
    pub async fn advance(&mut self, hooks: &impl Hooks) -> Result<Advance, Error> {
        let journal = self.under_way().cloned().ok_or(Error::NoneUnderWay)?;
        let phase = journal.phase;
        let groups = self.groups(journal.direction);
        if journal.reads_objects() && !self.fresh {
            self.survey(journal.direction).await?;
            self.fresh = true;
        }
        let observation = Observation {
            snapshot: &self.snapshot,
            site: self.site.clone(),
            now: now(),
        };
        match machine::next(&groups, &journal, &observation) {
            Step::Write(wave) => self.write(&groups, phase, wave).await,
            Step::Site(task) => {
                self.site = match hooks.perform(task, &journal).await {
                    Ok(Progress::Done) => SiteState::Done,
                    Ok(Progress::Waiting(what)) => SiteState::Waiting(what),
                    Err(failure) => SiteState::Failed(failure),
                };
                Ok(match &self.site {
                    SiteState::Waiting(what) => Advance::Waiting(phase, what.clone()),
                    _ => Advance::Stepped(phase),
                })
            }
            Step::Enter(next) => {
                let phase = next.phase;
                self.record(*next, None).await?;
                Ok(Advance::Stepped(phase))
            }
            Step::Wait(what) => {
                self.fresh = false;
                Ok(Advance::Waiting(phase, what))
            }
            Step::Blocked(what) => {
                self.fresh = false;
                Ok(Advance::Blocked(what))
            }
            Step::Done => {
                self.record(journal, Some(Outcome::Done)).await?;
                Ok(Advance::Done)
            }
            Step::RolledBack(failure) => {
                self.record(journal, Some(Outcome::RolledBack)).await?;
                Ok(Advance::RolledBack(failure))
            }
        }
    }

    async fn write(&mut self, groups: &Groups, phase: Phase, wave: Wave) -> Result<Advance, Error> {
        self.store.confirm().await?;
        tokio::time::sleep(wave.wait_first).await;
        let written = self
            .writes
            .run(groups, &wave.writes, &mut self.snapshot)
            .await;
        match written {
            Ok(()) => Ok(Advance::Stepped(phase)),
            Err(Error::Failed(failure)) => {
                // What became of the rest of the wave is unknown.
                self.fresh = false;
                self.after_failure(phase, failure).await
            }
            Err(error) => Err(error),
        }
    }

    /// Undoes the migration, or, if it can only be completed, reports what it waits for.
    async fn after_failure(&mut self, phase: Phase, failure: Failure) -> Result<Advance, Error> {
        match self.fail(failure).await {
            Ok(()) => Ok(Advance::Stepped(phase)),
            Err(Error::Failed(failure)) => Ok(Advance::Waiting(phase, failure.to_string())),
            Err(error) => Err(error),
        }
    }

    async fn record(&mut self, journal: Journal, outcome: Option<Outcome>) -> Result<(), Error> {
        let operation = Operation::Record(journal.phase);
        self.faults.pass(operation, Position::Before)?;
        self.store.write(&journal, outcome).await?;
        self.faults.pass(operation, Position::After)?;
        self.entry = Some(Entry { journal, outcome });
        self.site = SiteState::NotAsked;
        self.fresh = false;
        Ok(())
    }

    fn course(&self) -> Course {
        let journal = self.under_way();
        journal.map_or(Course::Forward, |journal| journal.course.clone())
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles only while operators can carry it out on any thread.
    #[expect(dead_code, reason = "compiling is the test")]
    fn steps_may_change_threads<'a>(executor: &'a mut Executor, hooks: &'a (impl Hooks + 'a)) {
        fn is_send(_: impl Send) {}
        is_send(executor.advance(hooks));
    }
}
