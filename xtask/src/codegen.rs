//! `cargo xtask codegen`: builds and runs the generator, which needs the crate `api` and no other of the workspace.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::programs::Program;

/// Flags of `codegen`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write nothing: fail if a file is not what would be written
    #[arg(long)]
    check: bool,
}

/// Writes or checks.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let flag = args.check.then(|| OsString::from("--check"));
    Program::CODEGEN.run("", flag.as_slice())
}
