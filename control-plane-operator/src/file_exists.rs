//! `control-plane-operator file-exists`: for probes in images without a shell.

use std::path::PathBuf;

/// The flags of `file-exists`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// The file is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not there yet")]
pub(crate) struct Absent(String);

/// Looks.
pub(crate) fn run(args: &Args) -> Result<(), Absent> {
    if args.file.exists() {
        return Ok(());
    }
    Err(Absent(args.file.display().to_string()))
}
