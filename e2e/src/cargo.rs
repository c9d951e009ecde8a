//! Programs of this tree, built by cargo.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::images::{FLAGS, TARGET};
use crate::progress::Progress;

/// Environment variable that names a built `hypershift`, so that none is built.
const COMMAND_LINE: &str = "HYPERSHIFT_CLI";

/// Builds the command line, or takes the one that the environment names.
pub async fn command_line(progress: &Progress) -> Result<PathBuf> {
    let program = Program::dev("cli", "hypershift");
    program.find(COMMAND_LINE, progress).await
}

/// A program of this tree, and how it is built.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Its crate.
    pub package: &'static str,
    /// Its name in the crate.
    pub name: &'static str,
    /// Whether time is spent on speed.
    pub profile: Profile,
    /// Whether it needs libraries.
    pub linking: Linking,
}

/// Whether time is spent on speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// As tests are built.
    Dev,
    /// As it ships.
    Release,
}

/// How a program is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// To the libraries of this machine.
    Dynamic,
    /// To none, as the Dockerfile does it.
    Static,
}

// === impl Program ===

impl Program {
    /// A program for tests on this machine.
    pub fn dev(package: &'static str, name: &'static str) -> Self {
        Self {
            package,
            name,
            profile: Profile::Dev,
            linking: Linking::Dynamic,
        }
    }

    /// The program that a variable of the environment names; without the variable it is built.
    pub async fn find(&self, variable: &str, progress: &Progress) -> Result<PathBuf> {
        match std::env::var_os(variable) {
            Some(path) => Ok(PathBuf::from(path)),
            None => self.build(progress).await,
        }
    }

    /// Builds it, with features of its package only; gives where it is.
    pub async fn build(&self, progress: &Progress) -> Result<PathBuf> {
        let step = progress.step(format!("building {self}"));
        let output = self.command().output().await.context("cannot run cargo")?;
        ensure!(
            output.status.success(),
            "cargo cannot build {} of {}:\n{}",
            self.name,
            self.package,
            String::from_utf8_lossy(&output.stderr)
        );
        step.done();
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .find_map(|message| self.executable(message))
            .with_context(|| format!("cargo built {} but did not say where", self.name))
    }

    fn command(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--package", self.package, "--bin", self.name])
            .arg("--message-format=json-render-diagnostics")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if self.profile == Profile::Release {
            command.arg("--release");
        }
        if self.linking == Linking::Static {
            // With a target, the flags are for the program only and not for build scripts.
            command.args(["--target", TARGET]).env("RUSTFLAGS", FLAGS);
        }
        command
    }

    /// The program that a message of cargo tells of.
    fn executable(&self, message: &str) -> Option<PathBuf> {
        let message: Value = serde_json::from_str(message).ok()?;
        let path = PathBuf::from(message["executable"].as_str()?);
        (message["target"]["name"] == self.name).then_some(path)
    }
}

/// For people who wait for it.
impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        if self.profile == Profile::Release {
            f.write_str(" (release)")?;
        }
        if self.linking == Linking::Static {
            f.write_str(", without libraries")?;
        }
        Ok(())
    }
}
