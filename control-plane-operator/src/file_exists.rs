//! `control-plane-operator file-exists`: checks that a file exists, for probes in images without a shell.

use std::path::PathBuf;

/// The flags of `file-exists`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// File to check.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The file does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0} does not exist")]
pub(crate) struct Absent(String);

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> Result<(), Absent> {
    if args.file.exists() {
        return Ok(());
    }
    Err(Absent(args.file.display().to_string()))
}
