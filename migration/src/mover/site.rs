//! What a migration needs done that is not a matter of objects: whoever runs the controllers does it.

use std::future::Future;

use crate::journal::{Failure, Journal};
use crate::machine::Task;

/// How far a task has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is done, also when it was done before.
    Done,
    /// It waits for this; it will be asked again.
    Waiting(String),
}

/// Carries out the tasks of a migration that are not a matter of objects: lock, controllers, commit.
///
/// Each is asked for again and again until it is done, also after a crash, so each recognises its own work.
pub trait Site: Sync {
    /// Does the next bit of `task` and looks how far it has come. A failure before the commit undoes the migration, so
    /// what may pass by itself is [`Progress::Waiting`]: the limits of the phases are judged by the machine.
    fn perform(
        &self,
        task: Task,
        journal: &Journal,
    ) -> impl Future<Output = Result<Progress, Failure>> + Send;
}
