//! What the gate builds: once, and in an order in which slow things run beside each other.
//!
//! The testbed's own program is built first. With it, the programs of other projects are built from their Go modules while
//! cargo builds the tests.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{self, Executable};
use crate::programs::{Program, announce};
use crate::sources::root;

/// Programs of this tree that tests run: as they are, or in images.
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

/// What has been built so far.
#[derive(Debug, Default)]
pub(super) struct Built {
    everything: Option<Everything>,
    go: Option<Child>,
}

/// The results of cargo's builds.
#[derive(Debug, Clone)]
struct Everything {
    tests: Vec<Executable>,
    programs: PathBuf,
    warnings: usize,
}

// === impl Built ===

impl Built {
    /// The test programs of the workspace.
    pub(super) fn tests(&mut self) -> Result<Vec<Executable>> {
        Ok(self.everything()?.tests)
    }

    /// The directory of the programs of this tree.
    pub(super) fn programs(&mut self) -> Result<PathBuf> {
        Ok(self.everything()?.programs)
    }

    /// How many warnings the compiler and the lints have about the workspace, all targets included.
    pub(super) fn warnings(&mut self) -> Result<usize> {
        Ok(self.everything()?.warnings)
    }

    fn everything(&mut self) -> Result<Everything> {
        if let Some(everything) = &self.everything {
            return Ok(everything.clone());
        }
        let testbed = Program::TESTBED.build()?;
        // Before `cli` is compiled for good: its build embeds what this fetches.
        announce("fetching the CRDs of the pinned modules");
        succeed(Command::new(&testbed).arg("embed"))?;
        self.start_go(&testbed)?;
        announce("building all tests and programs of the workspace");
        let built = cargo::build_tests()?;
        let programs = cargo::build(&PROGRAMS)?;
        let is_test = |one: &Executable| one.is_test && one.kind != "bench";
        let everything = Everything {
            tests: built.executables.into_iter().filter(is_test).collect(),
            programs: directory(&programs)?,
            warnings: built.warnings.len(),
        };
        self.everything = Some(everything.clone());
        Ok(everything)
    }

    fn start_go(&mut self, testbed: &Path) -> Result<()> {
        let log = log();
        announce(&format!(
            "building the testbed's Go programs at the same time, unless the cache has them (log: {})",
            log.display()
        ));
        let output = create(&log)?;
        let child = Command::new(testbed)
            .arg("programs")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output)
            .spawn()
            .with_context(|| format!("failed to run {}", testbed.display()))?;
        self.go = Some(child);
        Ok(())
    }

    /// Waits for the Go programs; shows what was printed meanwhile.
    pub(super) fn wait_for_go(&mut self) -> Result<()> {
        self.everything()?;
        let Some(mut child) = self.go.take() else {
            return Ok(());
        };
        let status = child
            .wait()
            .context("failed to wait for the Go programs' build")?;
        print!("{}", std::fs::read_to_string(log()).unwrap_or_default());
        if !status.success() {
            bail!("failed to build the testbed's Go programs ({status})");
        }
        Ok(())
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        if let Some(mut child) = self.go.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn log() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    target.join("xtask/go.log")
}

fn create(path: &Path) -> Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("failed to create {}", directory.display()))?;
    }
    File::create(path).with_context(|| format!("failed to create {}", path.display()))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed ({status})");
    }
    Ok(())
}

/// The directory that all programs are in.
fn directory(programs: &[Executable]) -> Result<PathBuf> {
    let program = programs
        .iter()
        .find(|one| one.kind == "bin")
        .context("cargo has built no program")?;
    let directory = program.path.parent();
    Ok(directory.unwrap_or(Path::new("/")).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testbed_runs_the_same_programs() {
        let text = crate::sources::read("testbed/src/cargo.rs").unwrap();
        let (_, list) = text.split_once("const PROGRAMS:").unwrap();
        let (_, list) = list.split_once("= [").unwrap();
        let (list, _) = list.split_once("];").unwrap();
        let names: Vec<_> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, PROGRAMS);
    }
}
