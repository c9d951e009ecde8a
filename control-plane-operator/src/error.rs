//! How the program ends when it cannot go on. Errors that are retried are reported by the module that retries.

use std::error::Error;
use std::process::ExitCode;

use support::error::{RUNTIME, USAGE};

/// Why a subcommand ended: whatever its module says.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The command line, or what it names, must be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Usage {
    /// What is wrong, and the way out.
    pub message: String,
}

/// The process's exit code for an error of a subcommand.
pub fn exit_code(error: &(dyn Error + Send + Sync + 'static)) -> ExitCode {
    if error.is::<Usage>() {
        return ExitCode::from(USAGE);
    }
    ExitCode::from(RUNTIME)
}
