//! `testbed programs`: everything that testbeds run and that is not of this tree.

use std::process::ExitCode;

use anyhow::Result;
use testbed::binaries::{Binaries, Binary};
use testbed::progress::Progress;

/// Builds what the cache lacks.
pub(super) async fn run() -> Result<ExitCode> {
    Binaries::ensure(&Binary::ALL, &Progress::detect()).await?;
    Ok(ExitCode::SUCCESS)
}
