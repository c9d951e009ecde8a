//! Files of an image, written to disk: programs and directories that are too large for memory.
//!
//! ```text
//! Releases::extract ── layers from the top down ──┬─ known: index of (layer, pattern) ────────────────┐
//!                                                 └─ download ──> unpack ──> digest checked ──> Store ─┴─> Merge
//! ```
//!
//! An image is untrusted input. Its paths are only compared, and never opened: a file is stored under the digest of its
//! content, links are resolved among the paths of the image, and no link is created on disk. What a layer contains counts
//! only after the digest of the whole layer was verified.

mod merge;
mod store;
#[cfg(test)]
mod tests;
mod unpack;

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use support::files::set_mode;

use crate::reference::Digest;
pub(crate) use merge::{Links, Merge};
pub use store::Store;
pub(crate) use unpack::{Refused, unpack};

/// How much is copied at once.
const AT_ONCE: usize = 64 << 10;
/// The largest file that is read into memory.
const LARGEST_TEXT: u64 = 64 << 10;
/// Mode of a file that the image can execute.
const PROGRAM: u32 = 0o755;
/// Mode of any other file.
const PLAIN: u32 = 0o644;

/// Which files of an image are wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    path: String,
    is_tree: bool,
}

/// What an image may take on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all wanted files of one layer.
    pub layer: u64,
    /// Wanted files, links and whiteouts of one layer.
    pub entries: usize,
    /// Bytes of all files that are kept.
    pub kept: u64,
}

/// A file on disk, under the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stored {
    /// Digest of the content.
    pub(crate) digest: String,
    pub(crate) size: u64,
    pub(crate) is_program: bool,
}

/// What a layer removes from the layers below.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Hidden {
    /// This path and everything below it.
    Tree(String),
    /// Everything below this path; all if it is empty.
    Below(String),
}

/// What one layer has of the wanted files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Found {
    pub(crate) files: BTreeMap<String, Stored>,
    /// Links and the paths that they lead to, from the root of the image.
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) hidden: Vec<Hidden>,
}

/// The wanted files of an image, on disk.
#[derive(Debug, Clone)]
pub struct Extracted {
    store: Store,
    files: BTreeMap<String, Stored>,
}

/// A file that was extracted cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The disk is full, or the file was removed.
    #[error("failed to copy {path} of an image")]
    Io {
        /// The path in the image.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The file on disk was changed. It is read again from the registry next time.
    #[error(
        "the stored copy of {path} does not match its digest: it is read from the registry again"
    )]
    Damaged {
        /// The path in the image.
        path: String,
    },
}

// === impl Pattern ===

impl Pattern {
    /// The file with this path from the root of the image, such as `usr/bin/render`.
    pub fn file(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            is_tree: false,
        }
    }

    /// All files below this directory, such as `etc/mcc/templates`.
    pub fn below(directory: impl Into<String>) -> Self {
        Self {
            path: directory.into(),
            is_tree: true,
        }
    }

    /// Whether a file is wanted.
    pub(crate) fn matches(&self, path: &str) -> bool {
        if self.is_tree {
            return is_below(path, &self.path);
        }
        path == self.path
    }

    /// Whether what is at this path, if it is not a directory, hides wanted files of the layers below.
    fn is_hidden_by(&self, path: &str) -> bool {
        path == self.path || is_below(&self.path, path) || self.matches(path)
    }

    /// Whether a whiteout concerns wanted files.
    pub(crate) fn concerns(&self, hidden: &Hidden) -> bool {
        match hidden {
            Hidden::Tree(path) => self.is_hidden_by(path),
            Hidden::Below(directory) => {
                directory.is_empty()
                    || is_below(&self.path, directory)
                    || (self.is_tree
                        && (self.path == *directory || is_below(directory, &self.path)))
            }
        }
    }

    /// Its name among stored indexes.
    fn key(&self) -> String {
        let kind = if self.is_tree { "below" } else { "file" };
        Digest::of(format!("{kind} {}", self.path).as_bytes())
            .hex()
            .to_owned()
    }
}

// === impl Caps ===

impl Default for Caps {
    fn default() -> Self {
        Self {
            file: 512 << 20,
            layer: 2 << 30,
            entries: 20_000,
            kept: 4 << 30,
        }
    }
}

// === impl Found ===

impl Found {
    /// The part that one pattern is about.
    pub(crate) fn of(&self, pattern: &Pattern) -> Self {
        let files = self.files.iter().filter(|(path, _)| pattern.matches(path));
        let links = self.links.iter().filter(|(path, _)| pattern.matches(path));
        let hidden = self.hidden.iter().filter(|it| pattern.concerns(it));
        Self {
            files: files.map(|(path, it)| (path.clone(), it.clone())).collect(),
            links: links.map(|(path, it)| (path.clone(), it.clone())).collect(),
            hidden: hidden.cloned().collect(),
        }
    }

    /// Adds another part of the same layer.
    pub(crate) fn join(&mut self, other: Self) {
        self.files.extend(other.files);
        self.links.extend(other.links);
        self.hidden.extend(other.hidden);
    }

    fn len(&self) -> usize {
        self.files.len() + self.links.len() + self.hidden.len()
    }
}

// === impl Extracted ===

impl Extracted {
    pub(crate) fn new(store: Store, files: BTreeMap<String, Stored>) -> Self {
        Self { store, files }
    }

    /// Whether the image has this file.
    pub fn contains(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The paths of the files, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The content of a small file, which is taken for empty if it is not small; nothing if the image does not have it.
    pub fn text(&self, path: &str) -> Result<Option<String>, CopyError> {
        let Some(stored) = self.files.get(path) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        if stored.size <= LARGEST_TEXT {
            self.read(path, stored, &mut bytes)?;
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Copies a file to a path that does not exist yet, and verifies its digest. False if the image does not have the file.
    ///
    /// It blocks for as long as the disk takes.
    pub fn copy(&self, path: &str, to: &Path) -> Result<bool, CopyError> {
        let Some(stored) = self.files.get(path) else {
            return Ok(false);
        };
        let mode = if stored.is_program { PROGRAM } else { PLAIN };
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create_new(true);
        let created = set_mode(options, mode).open(to);
        let mut file = created.map_err(failed(path))?;
        let copied = self.read(path, stored, &mut file);
        if copied.is_err() {
            let _ = std::fs::remove_file(to);
        }
        copied.map(|()| true)
    }

    fn read(&self, path: &str, stored: &Stored, to: &mut impl Write) -> Result<(), CopyError> {
        let from = self.store.blob(&stored.digest);
        let mut file = std::fs::File::open(&from).map_err(failed(path))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; AT_ONCE];
        loop {
            let length = file.read(&mut buffer).map_err(failed(path))?;
            if length == 0 {
                break;
            }
            hash.update(&buffer[..length]);
            to.write_all(&buffer[..length]).map_err(failed(path))?;
        }
        if Digest::from_hash(hash.finalize()).as_str() == stored.digest {
            return Ok(());
        }
        let _ = std::fs::remove_file(from);
        Err(CopyError::Damaged {
            path: path.to_owned(),
        })
    }
}

fn failed(path: &str) -> impl Fn(io::Error) -> CopyError + '_ {
    move |source| CopyError::Io {
        path: path.to_owned(),
        source,
    }
}

/// Where a file of an image belongs below a directory on disk; nothing if its path is not a plain relative one.
pub fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    path.split('/').all(is_plain).then(|| root.join(path))
}

/// Whether a path is below a directory.
fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| rest.starts_with('/'))
}
