//! The file: replaced as a whole, and only if its content differs.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// The file was not written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {path}: it keeps its previous content")]
pub(super) struct Error {
    path: String,
    source: io::Error,
}

/// Writes the file; returns whether its content has changed.
pub(super) fn write(path: &Path, content: &str) -> Result<bool, Error> {
    // A file that cannot be read is replaced.
    if fs::read(path).is_ok_and(|current| current == content.as_bytes()) {
        return Ok(false);
    }
    let temporary = path.with_extension("cfg.tmp");
    let written = replace(&temporary, path, content);
    written.map_err(|source| Error {
        path: path.display().to_string(),
        source,
    })?;
    Ok(true)
}

fn replace(temporary: &Path, path: &Path, content: &str) -> io::Result<()> {
    let mut file = File::create(temporary)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, path)
}
