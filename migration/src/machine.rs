//! What to do next: the whole migration as one pure function of its journal and of what is observed.
//!
//! ```text
//!  journal ----.            .--> Write   do these writes, put the responses into the snapshot
//!               >-- next --+--> Site    the hooks do this, and report the result
//!  observation-'            |--> Enter   persist this journal, then observe again
//!                           '--> Wait, Blocked, Done, RolledBack
//! ```
//!
//! The executor calls it again after each step. Every step recognises its own work, so that one that was done and not
//! noted down is not done twice.

mod back;
mod forward;
mod home;
mod retire;
mod write;

use std::time::Duration;

use crate::groups::Groups;
use crate::journal::{Course, Failure, Journal};
use crate::snapshot::Snapshot;

pub use write::{Act, Format, Propagation, Purpose, Subresource, Write};

/// What is known before a step.
#[derive(Debug)]
pub struct Observation<'a> {
    /// The objects. Fresh when a phase was entered, and since then kept up to date with the responses to own writes.
    pub snapshot: &'a Snapshot,
    /// How the site's last task went, if one was requested since the journal was written last.
    pub site: SiteState,
    /// Seconds since 1970.
    pub now: i64,
}

/// How far a task of the site is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteState {
    /// None was requested since the journal was written last.
    NotAsked,
    /// Under way; what is waited for.
    Waiting(String),
    /// Done.
    Done,
    /// Failed: before the commit, everything is undone.
    Failed(Failure),
}

/// What the site does: everything that is not about objects of the groups. Each task is idempotent and is called
/// until it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// Takes the lock.
    Lock,
    /// Stops all controllers of the source types, and proves it.
    Quiesce,
    /// Starts those of the target types.
    Deploy,
    /// Sees that the cluster is no worse than it was.
    Health,
    /// Makes the one write that makes the target types the owner. It fails only with proof that it was not made.
    Commit,
    /// Gives the lock back, after a completed migration.
    Finish,
    /// Stops the controllers of the target types, and proves it.
    QuiesceAgain,
    /// Gives the deployments their old templates, stopped, and proves that no pod of the target types is left.
    RestoreTemplates,
    /// Starts the controllers of the source types again.
    ScaleBack,
    /// Gives the lock back, after a migration that was undone.
    Unlock,
}

/// Writes that do not depend on each other: any order, any number at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Wave {
    /// How long to wait before the first: objects with a relevant order of age must not be created in the same second.
    pub wait_first: Duration,
    /// At least one.
    pub writes: Vec<Write>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Do these, put the responses into the snapshot, ask again.
    ///
    /// What was refused for a reason of the object's own (409, 404, "exists already") is read again into the snapshot,
    /// or taken out of it; anything else that remains after retries is a [`Journal::fail`].
    Write(Wave),
    /// Have the site do this, ask again with its state.
    Site(Task),
    /// Persist this journal; the hooks count as not called; read the objects again if [`Journal::reads_objects`].
    Enter(Box<Journal>),
    /// Observe again, objects too, after a moment: for the reason given.
    Wait(String),
    /// Past the commit, an administrator has to resolve a problem. Observe again after a while.
    Blocked(String),
    /// The migration is complete.
    Done,
    /// The migration is undone, for this reason.
    RolledBack(Failure),
}

/// Decides the next step.
pub fn next(groups: &Groups, journal: &Journal, observation: &Observation<'_>) -> Step {
    match &journal.course {
        Course::Forward => forward::next(groups, journal, observation),
        Course::Back(failure) => back::next(groups, journal, failure, observation),
    }
}
