//! What the `hypershift` program embeds: fetched before it is built, since nothing of upstream's text is committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cli::crds::source::embedded;
use tokio::sync::OnceCell;

/// What this process has written.
static FILLED: OnceCell<(PathBuf, usize)> = OnceCell::const_new();

/// Writes the file that the next build of `cli` takes up, once in each process; gives the file and its size.
pub async fn fill() -> Result<(PathBuf, usize)> {
    FILLED.get_or_try_init(write).await.cloned()
}

/// A file with the same content is left alone, so that nothing is built again for it.
async fn write() -> Result<(PathBuf, usize)> {
    let text = tokio::task::spawn_blocking(embedded::pack)
        .await?
        .context("failed to read the CRDs of the pinned modules")?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/embedded/crds.json");
    if std::fs::read_to_string(&file).is_ok_and(|found| found == text) {
        return Ok((file, text.len()));
    }
    // Whole or not at all: a build may be continuing.
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, &text)
        .and_then(|()| std::fs::rename(&fresh, &file))
        .with_context(|| format!("failed to write {}", file.display()))?;
    Ok((file, text.len()))
}
