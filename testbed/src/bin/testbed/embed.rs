//! `cargo xtask embed`: what the next builds of `hypershift` and of `hypershift-operator` are to carry.

use std::process::ExitCode;

use anyhow::Result;
use testbed::embedded;

pub(super) async fn run() -> Result<ExitCode> {
    for (file, bytes) in embedded::fill().await? {
        println!("{}: {bytes} bytes", file.display());
    }
    Ok(ExitCode::SUCCESS)
}
