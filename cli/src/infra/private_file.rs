//! Files with secrets, which only their owner may read; on Windows, they have the permissions of their directory.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use support::files::set_mode;
use tempfile::NamedTempFile;

/// Writes a file at once: an interruption leaves an earlier one as it was. What is no regular file is written to.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = if path.exists() && !is_regular(path) {
        let mut options = OpenOptions::new();
        let opened = set_mode(options.write(true), 0o600).open(path);
        opened.and_then(|mut file| file.write_all(text.as_bytes()))
    } else {
        replace(path, text)
    };
    written.with_context(|| format!("failed to write {}", path.display()))
}

/// Whether there is a regular file.
pub(super) fn is_regular(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

/// Temporary files are for their owner only.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // The file, not the link to it.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_for_their_owner_even_if_they_were_not_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("infra.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        write(&directory.path().join("absent/infra.json"), "").unwrap_err();
    }
}
