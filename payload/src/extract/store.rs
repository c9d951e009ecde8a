//! What was extracted, on disk: contents by their digest, and for each layer and pattern an index of what it has.
//!
//! Indexes and contents are written to temporary files and renamed, so that neither is ever incomplete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::{NamedTempFile, TempDir};

use super::{Caps, Found, Pattern};
use crate::reference::Digest;

/// The subdirectory of contents.
const CONTENTS: &str = "contents";
/// The subdirectory of indexes.
const INDEXES: &str = "indexes";
/// The prefix of directories for files whose layer is not verified yet.
const STAGING: &str = "new-";
/// The age at which such a directory was left by a process that was killed: reading an image takes minutes.
const ABANDONED: Duration = Duration::from_hours(1);

/// A directory with files of images. One process uses it.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
    caps: Caps,
}

// === impl Store ===

impl Store {
    /// Nothing is created yet.
    pub fn new(directory: impl Into<PathBuf>, caps: Caps) -> Self {
        Self {
            directory: directory.into(),
            caps,
        }
    }

    pub(crate) fn caps(&self) -> &Caps {
        &self.caps
    }

    /// Where the content with this digest is.
    pub(super) fn blob(&self, digest: &str) -> PathBuf {
        self.directory.join(CONTENTS).join(name(digest))
    }

    /// A directory for files whose layer is not verified yet. It is removed when it is dropped.
    pub(crate) fn staging(&self) -> io::Result<TempDir> {
        let contents = self.directory.join(CONTENTS);
        fs::create_dir_all(&contents)?;
        fs::create_dir_all(self.directory.join(INDEXES))?;
        remove_abandoned(&contents)?;
        tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(contents)
    }

    /// What is known of an image: its layers.
    pub(crate) fn known<T: DeserializeOwned>(&self, image: &Digest, arch: &str) -> Option<T> {
        self.load(&format!("image-{}-{arch}", image.hex()))
    }

    /// Stores what is known of an image.
    pub(crate) fn know(
        &self,
        image: &Digest,
        arch: &str,
        known: &impl Serialize,
    ) -> io::Result<()> {
        fs::create_dir_all(self.directory.join(INDEXES))?;
        self.save(&format!("image-{}-{arch}", image.hex()), known)
    }

    /// What a layer has at these patterns, and the patterns for which that is not known.
    pub(crate) fn found(&self, layer: &Digest, wanted: &[Pattern]) -> (Found, Vec<Pattern>) {
        let (mut known, mut unknown) = (Found::default(), Vec::new());
        for pattern in wanted {
            let found: Option<Found> = self.load(&index(layer, pattern));
            match found.filter(|found| self.has_contents(found)) {
                Some(found) => known.join(found),
                None => unknown.push(pattern.clone()),
            }
        }
        (known, unknown)
    }

    /// Keeps what a verified layer has at these patterns.
    pub(crate) fn keep(
        &self,
        layer: &Digest,
        wanted: &[Pattern],
        found: &Found,
        staging: &Path,
    ) -> io::Result<()> {
        let mut kept = BTreeSet::new();
        for stored in found.files.values() {
            let to = self.blob(&stored.digest);
            // Several files may have the same content.
            if kept.insert(to.clone()) {
                fs::rename(staging.join(name(&stored.digest)), to)?;
            }
        }
        for pattern in wanted {
            self.save(&index(layer, pattern), &found.of(pattern))?;
        }
        self.prune(&kept)
    }

    /// Whether all contents are there. They are marked as used.
    fn has_contents(&self, found: &Found) -> bool {
        found.files.values().all(|stored| {
            let Ok(file) = File::open(self.blob(&stored.digest)) else {
                return false;
            };
            // Best effort: the time only decides what is removed first.
            let _ = file.set_modified(SystemTime::now());
            file.metadata().is_ok_and(|it| it.len() == stored.size)
        })
    }

    /// Removes the contents that were not used for the longest time, beyond the limit. Those of `new` stay.
    fn prune(&self, new: &BTreeSet<PathBuf>) -> io::Result<()> {
        let (mut files, mut total) = (Vec::new(), 0_u64);
        for entry in fs::read_dir(self.directory.join(CONTENTS))? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                total = total.saturating_add(metadata.len());
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        for (_, size, path) in files {
            if total <= self.caps.kept {
                break;
            }
            if !new.contains(&path) {
                fs::remove_file(path)?;
                total = total.saturating_sub(size);
            }
        }
        Ok(())
    }

    /// A damaged index is one that is not known.
    fn load<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let bytes = fs::read(self.directory.join(INDEXES).join(name)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn save(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let indexes = self.directory.join(INDEXES);
        let json = serde_json::to_vec(value).map_err(io::Error::other)?;
        let mut file = NamedTempFile::new_in(&indexes)?;
        file.write_all(&json)?;
        file.persist(indexes.join(name))?;
        Ok(())
    }
}

/// Removes what a process that was killed has left.
fn remove_abandoned(contents: &Path) -> io::Result<()> {
    for entry in fs::read_dir(contents)? {
        let entry = entry?;
        let is_staging = entry.file_name().to_string_lossy().starts_with(STAGING);
        let modified = entry.metadata().and_then(|it| it.modified()).ok();
        let age = modified.and_then(|it| it.elapsed().ok());
        if is_staging && age.is_some_and(|age| age > ABANDONED) {
            // Another read may have removed it.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// The name of the file with the content of this digest.
fn name(digest: &str) -> &str {
    digest.trim_start_matches("sha256:")
}

fn index(layer: &Digest, pattern: &Pattern) -> String {
    format!("layer-{}-{}", layer.hex(), pattern.key())
}
