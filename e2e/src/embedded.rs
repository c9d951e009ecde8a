//! What the `hypershift` program carries: fetched before it is built, since nothing of upstream's text is committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cli::crds::source::embedded;

/// Writes the file that the next build of `cli` takes up, and gives the file and its size.
///
/// A file with the same content is left alone, so that nothing is built again for it.
pub async fn fill() -> Result<(PathBuf, usize)> {
    let text = tokio::task::spawn_blocking(embedded::pack)
        .await?
        .context("cannot read the CRDs of the pinned modules")?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/embedded/crds.json");
    if std::fs::read_to_string(&file).is_ok_and(|found| found == text) {
        return Ok((file, text.len()));
    }
    // Whole or not at all: a build may be going on.
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, &text)
        .and_then(|()| std::fs::rename(&fresh, &file))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok((file, text.len()))
}
