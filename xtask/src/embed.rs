//! What the `hypershift` binary carries: fetched before it is built, since nothing of upstream's text is committed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use cli::crds::source::embedded;

use crate::tidy::root;

pub(super) fn run() -> Result<ExitCode> {
    let bytes = fill()?;
    println!("{}: {bytes} bytes", file().display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the file that the next build of `cli` takes up, and gives its size.
///
/// A file with the same content is left alone, so that nothing is built again for it.
pub(super) fn fill() -> Result<usize> {
    let text = embedded::pack().context("cannot read the CRDs of the pinned modules")?;
    let file = file();
    if std::fs::read_to_string(&file).is_ok_and(|found| found == text) {
        return Ok(text.len());
    }
    // Whole or not at all: a build may be going on.
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, &text)
        .and_then(|()| std::fs::rename(&fresh, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(text.len())
}

fn file() -> PathBuf {
    root().join("cli/embedded/crds.json")
}
