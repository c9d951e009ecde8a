//! The tasks of a migration that are not about objects: its caller, which runs the controllers, carries them out.

use std::future::Future;

use migration::journal::{Failure, Journal};
use migration::machine::Task;

/// The progress of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is done, also when it was done before.
    Done,
    /// It waits for this; it will be called again.
    Waiting(String),
}

/// Carries out the tasks of a migration that are not about objects: lock, controllers, commit.
///
/// Each is requested until it is done, also after a crash, and so has to be idempotent.
pub trait Hooks: Sync {
    /// Advances `task` and reports its progress. A failure before the commit undoes the migration, so
    /// report transient problems as [`Progress::Waiting`]: the machine enforces the limits of the phases.
    fn perform(
        &self,
        task: Task,
        journal: &Journal,
    ) -> impl Future<Output = Result<Progress, Failure>> + Send;
}
