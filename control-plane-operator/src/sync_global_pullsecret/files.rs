//! The files of the node: reading, and atomic replacement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Permissions of the file: it has credentials.
const MODE: u32 = 0o600;
/// Name of the temporary file, which is in the same directory so that it can be renamed.
const TEMPORARY: &str = ".config.json.tmp-sync";

/// Where the files are.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// kubelet's file.
    pub(super) kubelet: PathBuf,
    /// The pull secret with additions of users.
    pub(super) global: PathBuf,
    /// The pull secret of the cluster.
    pub(super) original: PathBuf,
}

/// A file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to read {path}")]
    Read { path: String, source: io::Error },
    #[error("failed to write {path}: it keeps its previous content")]
    Write { path: String, source: io::Error },
    #[error(
        "{path} is not a pull secret: {problem}. Fix Secret kube-system/additional-pull-secret"
    )]
    Invalid { path: String, problem: &'static str },
}

// === impl Files ===

impl Files {
    /// The files of a node.
    pub(super) fn of_node() -> Self {
        Self {
            kubelet: "/var/lib/kubelet/config.json".into(),
            global: "/etc/global-pull-secret/.dockerconfigjson".into(),
            original: "/etc/original-pull-secret/.dockerconfigjson".into(),
        }
    }

    /// The content that kubelet's file should have.
    pub(super) fn desired(&self) -> Result<Vec<u8>, Error> {
        let (path, content) = match read(&self.global)? {
            Some(content) if !content.is_empty() => (&self.global, content),
            _ => {
                let missing = || Error::Read {
                    path: self.original.display().to_string(),
                    source: io::ErrorKind::NotFound.into(),
                };
                (&self.original, read(&self.original)?.ok_or_else(missing)?)
            }
        };
        match problem(&content) {
            None => Ok(content),
            Some(problem) => Err(Error::Invalid {
                path: path.display().to_string(),
                problem,
            }),
        }
    }

    /// The content of kubelet's file, if it exists.
    pub(super) fn current(&self) -> Result<Option<Vec<u8>>, Error> {
        read(&self.kubelet)
    }

    /// Replaces kubelet's file: a reader finds the previous content or the new one, also after a crash.
    pub(super) fn replace(&self, content: &[u8]) -> Result<(), Error> {
        let failed = |source| Error::Write {
            path: self.kubelet.display().to_string(),
            source,
        };
        let directory = self.kubelet.parent().unwrap_or(Path::new("/"));
        let temporary = directory.join(TEMPORARY);
        let written = write(&temporary, content)
            .and_then(|()| fs::rename(&temporary, &self.kubelet))
            .and_then(|()| File::open(directory)?.sync_all());
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed)
    }

    /// Gives kubelet's file the content that it had.
    pub(super) fn restore(&self, previous: Option<&[u8]>) -> Result<(), Error> {
        match previous {
            Some(previous) => self.replace(previous),
            None => fs::remove_file(&self.kubelet).map_err(|source| Error::Write {
                path: self.kubelet.display().to_string(),
                source,
            }),
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read {
            path: path.display().to_string(),
            source,
        }),
    }
}

/// Writes a new file. One that a killed process has left is removed: it may have other permissions.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(MODE).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Why the content is not a pull secret. The content is never quoted.
fn problem(content: &[u8]) -> Option<&'static str> {
    let Ok(content) = serde_json::from_slice::<Value>(content) else {
        return Some("it is not JSON");
    };
    match content.get("auths") {
        None => Some("it has no key auths"),
        Some(_) => None,
    }
}
