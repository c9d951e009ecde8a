//! Errors that end the program. Errors that are retried are reported where they are retried.

use std::error::Error;
use std::process::ExitCode;

use support::error::{RUNTIME, USAGE};

/// The error of a subcommand.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The command line, or a file that it names, is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Usage {
    /// What is wrong, and how to fix it.
    pub message: String,
}

/// Returns the exit code for an error of a subcommand.
pub fn exit_code(error: &(dyn Error + Send + Sync + 'static)) -> ExitCode {
    if error.is::<Usage>() {
        return ExitCode::from(USAGE);
    }
    ExitCode::from(RUNTIME)
}
