//! Static programs from this tree, as they are put into images.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{FLAGS, TARGET};
use crate::progress::Progress;

/// A program of this tree.
#[derive(Debug, Clone, Copy)]
pub struct StaticProgram {
    /// Its crate.
    pub package: &'static str,
    /// Its name in the crate.
    pub name: &'static str,
}

/// Builds a program so that it needs no library; gives where it is.
///
/// Each by itself, so that it has only the features that it asks for, as in the Dockerfile. Not optimised, because a
/// release takes minutes, and size and speed are not what the testbed is for.
pub async fn build_static(program: &StaticProgram, progress: &Progress) -> Result<PathBuf> {
    let StaticProgram { package, name } = program;
    let step = progress.step(format!("building {name}, without libraries"));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = tokio::process::Command::new(cargo)
        .args([
            "build",
            "--target",
            TARGET,
            "--package",
            package,
            "--bin",
            name,
        ])
        .arg("--message-format=json-render-diagnostics")
        // With a target, the flags are for the program only and not for build scripts.
        .env("RUSTFLAGS", FLAGS)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!(
            "cargo cannot build {name} of {package} for {TARGET}:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    step.done();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|message| executable(message, name))
        .with_context(|| format!("cargo built {name} but did not say where"))
}

/// The program that a message of cargo tells of.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    (message["target"]["name"] == name).then_some(path)
}
