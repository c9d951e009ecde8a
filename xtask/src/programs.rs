//! Programs of other crates that do the work of a command.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo;

/// A program that is built, then run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Program {
    name: &'static str,
    what: &'static str,
}

// === impl Program ===

impl Program {
    /// Management clusters on this machine.
    pub(crate) const TESTBED: Self = Self {
        name: "testbed",
        what: "the testbed",
    };
    /// Measurements.
    pub(crate) const BENCH: Self = Self {
        name: "bench",
        what: "the measurements",
    };

    /// What is generated from types.
    pub(crate) const CODEGEN: Self = Self {
        name: "codegen",
        what: "the generator",
    };

    /// Builds it with cargo's progress on the terminal; gives where it is.
    pub(crate) fn build(self) -> Result<PathBuf> {
        announce(&format!(
            "building {} from this tree; the first time, this compiles hundreds of crates and takes minutes",
            self.what
        ));
        let built = cargo::build(&[self.name])?;
        built
            .into_iter()
            .find(|one| one.name == self.name && one.kind == "bin")
            .map(|one| one.path)
            .with_context(|| format!("failed to find the program {} that cargo built", self.name))
    }

    /// Builds it and becomes it. Returns only if it cannot be run.
    pub(crate) fn run(self, command: &str, arguments: &[OsString]) -> Result<ExitCode> {
        let path = self.build()?;
        let mut program = Command::new(&path);
        if !command.is_empty() {
            program.arg(command);
        }
        let error = program.args(arguments).exec();
        Err(error).with_context(|| format!("failed to run {}", path.display()))
    }
}

/// Prints what is being done, at once.
pub(crate) fn announce(what: &str) {
    let mut output = std::io::stderr();
    // A line that cannot be shown is no reason to stop.
    drop(writeln!(output, "xtask: {what}"));
}
