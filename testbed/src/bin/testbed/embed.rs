//! `cargo xtask embed`: what the next build of `hypershift` is to carry.

use std::process::ExitCode;

use anyhow::Result;
use testbed::embedded;

pub(super) async fn run() -> Result<ExitCode> {
    let (file, bytes) = embedded::fill().await?;
    println!("{}: {bytes} bytes", file.display());
    Ok(ExitCode::SUCCESS)
}
