//! The `hcp` binary.

use std::process::ExitCode;

use cli::{Hcp, outcome, run_hcp};

fn main() -> ExitCode {
    outcome::<Hcp>(run_hcp)
}
