//! The `hypershift` binary.

use std::process::ExitCode;

use cli::{Cli, outcome, run};

fn main() -> ExitCode {
    outcome::<Cli>(run)
}
