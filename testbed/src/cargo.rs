//! Programs of this tree, built by cargo.
//!
//! What images need is static, and is built in one invocation with one set of features. A testbed that is static itself,
//! as `cargo xtask` builds it, shares all its artifacts with them, so that nothing is compiled twice.

mod messages;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::images::{FLAGS, TARGET};
use crate::progress::Progress;
use messages::Built;

/// Environment variable that names a directory of programs, so that none of them is built.
pub const PROGRAMS_VARIABLE: &str = "HYPERSHIFT_TESTBED_PROGRAMS";
/// Environment variable that names a built `hypershift`, so that none is built.
const COMMAND_LINE: &str = "HYPERSHIFT_CLI";
/// The variable by which cargo takes flags for [`TARGET`].
const FLAGS_VARIABLE: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS";
/// Has programs built with the features that tests have: cargo unifies them as soon as a test is built, too. This one is
/// small.
const SAME_FEATURES: [&str; 3] = ["--workspace", "--test", "up_to_date"];

/// All programs that testbeds run, as they are or in images.
const PROGRAMS: [&str; 18] = [
    "agent-stand-in",
    "api-stand-in",
    "ask",
    "autoscaler",
    "capi-proxy",
    "control-plane-operator",
    "curl",
    "etcd-readyz",
    "extension",
    "hcp",
    "hyperkube",
    "hypershift",
    "hypershift-operator",
    "ignite",
    "machine-config",
    "pause",
    "resolve",
    "stand-in",
];

/// What this process has built without libraries.
static STATIC: OnceCell<Built> = OnceCell::const_new();

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
    /// As this program is, for use on this machine.
    Dynamic,
    /// To no library, as the Dockerfile does it.
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

    /// Builds it, unless [`PROGRAMS_VARIABLE`] names a directory that has it; gives where it is.
    pub async fn build(&self, progress: &Progress) -> Result<PathBuf> {
        match self.profile {
            Profile::Dev => match self.ready_made() {
                Some(path) => Ok(path),
                None => self.build_dev(progress).await,
            },
            Profile::Release => self.build_release(progress).await,
        }
    }

    fn ready_made(&self) -> Option<PathBuf> {
        let directory = std::env::var_os(PROGRAMS_VARIABLE)?;
        Some(Path::new(&directory).join(self.name)).filter(|path| path.is_file())
    }

    async fn build_dev(&self, progress: &Progress) -> Result<PathBuf> {
        if self.linking == Linking::Static || cfg!(target_feature = "crt-static") {
            return build_static(progress).await?.path(self.name);
        }
        let step = progress.step(format!("building {self}"));
        let built = build(&SAME_FEATURES, &[self.name], Linking::Dynamic).await?;
        step.done();
        built.path(self.name)
    }

    /// With the features of its package only, as it is measured and shipped.
    async fn build_release(&self, progress: &Progress) -> Result<PathBuf> {
        let step = progress.step(format!("building {self}"));
        let selected = ["--release", "--package", self.package];
        let built = build(&selected, &[self.name], self.linking).await?;
        step.done();
        built.path(self.name)
    }
}

/// For the output.
impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)?;
        if self.profile == Profile::Release {
            f.write_str(" (release)")?;
        }
        if self.linking == Linking::Static {
            f.write_str(", static")?;
        }
        Ok(())
    }
}

/// Builds all programs that testbeds run, once in each process: for callers that do something else meanwhile.
pub async fn prepare(progress: &Progress) -> Result<()> {
    let ready = Program::dev("cli", "hypershift").ready_made().is_some();
    if !ready {
        build_static(progress).await?;
    }
    Ok(())
}

async fn build_static(progress: &Progress) -> Result<&'static Built> {
    let build = async || {
        let step = progress.step("building the programs of this tree, static");
        let built = build(&SAME_FEATURES, &PROGRAMS, Linking::Static).await?;
        step.done_with(&format!("{} programs", PROGRAMS.len()));
        Ok(built)
    };
    STATIC.get_or_try_init(build).await
}

/// Builds programs in one invocation of cargo.
async fn build(selected: &[&str], programs: &[&str], linking: Linking) -> Result<Built> {
    let Output {
        status,
        stdout,
        stderr,
    } = command(selected, programs, linking)
        .output()
        .await
        .context("failed to run cargo")?;
    ensure!(
        status.success(),
        "failed to build {}:\n{}",
        programs.join(", "),
        String::from_utf8_lossy(&stderr)
    );
    Ok(Built::read(&String::from_utf8_lossy(&stdout)))
}

fn command(selected: &[&str], programs: &[&str], linking: Linking) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .arg("build")
        .args(selected)
        .args(programs.iter().flat_map(|program| ["--bin", program]))
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if linking == Linking::Static {
        // With a target, the flags are for the programs only and not for build scripts.
        command
            .args(["--target", TARGET])
            .env(FLAGS_VARIABLE, FLAGS);
    }
    command
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn every_program_is_one_of_the_workspace() {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .await
            .unwrap();
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let targets = packages.flat_map(|package| package["targets"].as_array().unwrap());
        let programs = targets.filter(|target| target["kind"][0] == "bin");
        let known: Vec<_> = programs
            .map(|target| target["name"].as_str().unwrap())
            .collect();
        for program in PROGRAMS {
            assert!(known.contains(&program), "{program}");
        }
    }
}
