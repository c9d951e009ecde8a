//! Takes wanted files out of a layer while it is downloaded.

use std::fs::OpenOptions;
use std::io::{self, Read, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use support::files::set_mode;
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{AT_ONCE, Caps, Found, Hidden, Pattern, Stored};
use crate::error::Reason;
use crate::layers;
use crate::reference::Digest;

/// The prefix of a whiteout.
const WHITEOUT: &str = ".wh.";
/// The name of an opaque whiteout.
const OPAQUE: &str = ".wh..wh..opq";
/// The longest path of an entry, that of Linux.
const LONGEST_PATH: usize = 4096;
/// The largest header that describes the next entry.
const LARGEST_HEADER: u64 = 1 << 20;
/// The permission of a program: its owner, its group or others may execute it.
const EXECUTABLE: u32 = 0o111;

/// Why a layer is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// It is not an archive.
    #[error("a layer is not an archive")]
    Archive(#[source] io::Error),
    /// It is too large.
    #[error("a layer unpacks to more than 8 GiB")]
    Layer,
    /// A file is too large.
    #[error("{path} is larger than {limit} bytes")]
    File { path: String, limit: u64 },
    /// All files together are too large.
    #[error("the wanted files of a layer are larger than {0} bytes")]
    Total(u64),
    /// There are too many files.
    #[error("a layer has more than {0} entries at the wanted paths")]
    Entries(usize),
    /// A path is too long.
    #[error("a layer has an entry with a path that is too long")]
    Path,
    /// A path leads out of the image.
    #[error("a layer has the entry {0:?}, which leads out of the image")]
    Outside(String),
    /// The file cannot be written.
    #[error("failed to write a file of the image to disk")]
    Disk(#[source] io::Error),
}

/// What the headers before an entry say about it.
#[derive(Default)]
struct Extension {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    /// Its content is not that of the file.
    is_sparse: bool,
}

struct Unpacking<'a> {
    wanted: &'a [Pattern],
    caps: &'a Caps,
    /// Where files are written until the digest of the layer is verified.
    staging: &'a Path,
    left: u64,
    written: usize,
    found: Found,
}

/// Writes the wanted files of a layer to a directory, each under its digest.
pub(crate) fn unpack(
    layer: impl Read,
    wanted: &[Pattern],
    caps: &Caps,
    staging: &Path,
) -> Result<Found, Refused> {
    let layer = layers::open(layer).map_err(refused)?;
    let mut archive = Archive::new(layer);
    let mut unpacking = Unpacking {
        wanted,
        caps,
        staging,
        left: caps.layer,
        written: 0,
        found: Found::default(),
    };
    let mut extension = Extension::default();
    // Raw: headers that describe the next entry have any size, and would be held in memory.
    for entry in archive.entries().map_err(refused)?.raw(true) {
        let mut entry = entry.map_err(refused)?;
        if extension.read(&mut entry)? {
            continue;
        }
        unpacking.take(&mut entry, std::mem::take(&mut extension))?;
    }
    Ok(unpacking.found)
}

// === impl Refused ===

impl Refused {
    /// The reason of an error about the image.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Archive(_) | Self::Path | Self::Outside(_) => Reason::Corrupt,
            Self::Layer | Self::File { .. } | Self::Total(_) | Self::Entries(_) => Reason::TooLarge,
            Self::Disk(_) => Reason::Unreachable,
        }
    }
}

// === impl Extension ===

impl Extension {
    /// Reads an entry that describes the next one; false if it is none.
    fn read(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<bool, Refused> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.path = Some(terminated(header(entry)?)),
            EntryType::GNULongLink => self.link = Some(terminated(header(entry)?)),
            EntryType::XHeader => self.records(&header(entry)?)?,
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn records(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        // A record with a line break in its value, such as an attribute, is not parsed, and not wanted.
        for record in PaxExtensions::new(bytes).flatten() {
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.link = Some(record.value_bytes().to_vec()),
                // Only for files of more than 8 GiB: readers disagree about where they end.
                b"size" => return Err(refused(io::ErrorKind::InvalidData.into())),
                key if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
        }
        Ok(())
    }
}

fn header(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Refused> {
    if entry.size() > LARGEST_HEADER {
        return Err(Refused::Path);
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

fn terminated(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    bytes
}

// === impl Unpacking ===

impl Unpacking<'_> {
    fn take(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        extension: Extension,
    ) -> Result<(), Refused> {
        let bytes = extension
            .path
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let Ok(path) = std::str::from_utf8(&bytes) else {
            // No wanted path is like this.
            return Ok(());
        };
        let path = normal(path)?;
        if let Some(hidden) = whiteout(&path) {
            return self.hide(hidden);
        }
        let is_wanted = self.wanted.iter().any(|pattern| pattern.matches(&path));
        match entry.header().entry_type() {
            // Its content is merged with that of the layers below, unless it replaces a file.
            EntryType::Directory if !is_wanted => Ok(()),
            EntryType::Regular if is_wanted && !extension.is_sparse => {
                let stored = self.store(entry, &path)?;
                self.forget(&path);
                self.found.files.insert(path, stored);
                self.check()
            }
            kind @ (EntryType::Symlink | EntryType::Link) if is_wanted => {
                let link = extension
                    .link
                    .or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
                let link = link.and_then(|bytes| String::from_utf8(bytes).ok());
                self.forget(&path);
                let Some(target) = link.map(|link| target(&path, &link, kind)) else {
                    return self.hide(Hidden::Tree(path));
                };
                self.found.links.insert(path, target?);
                self.check()
            }
            EntryType::Directory => {
                self.forget(&path);
                // The directory itself hides a file of this name; below it there is nothing to hide.
                let replaces = self.wanted.iter().any(|it| !it.is_tree && it.path == path);
                if replaces {
                    return self.hide(Hidden::Tree(path));
                }
                Ok(())
            }
            _ => {
                self.forget(&path);
                self.hide(Hidden::Tree(path))
            }
        }
    }

    /// Of several entries with one path, the last one counts.
    fn forget(&mut self, path: &str) {
        self.found.files.remove(path);
        self.found.links.remove(path);
    }

    fn hide(&mut self, hidden: Hidden) -> Result<(), Refused> {
        if self.wanted.iter().any(|pattern| pattern.concerns(&hidden)) {
            self.found.hidden.push(hidden);
        }
        self.check()
    }

    fn check(&self) -> Result<(), Refused> {
        if self.found.len() > self.caps.entries {
            return Err(Refused::Entries(self.caps.entries));
        }
        Ok(())
    }

    fn store(&mut self, entry: &mut Entry<'_, impl Read>, path: &str) -> Result<Stored, Refused> {
        let size = entry.size();
        if size > self.caps.file {
            let limit = self.caps.file;
            let path = path.to_owned();
            return Err(Refused::File { path, limit });
        }
        self.left = self
            .left
            .checked_sub(size)
            .ok_or(Refused::Total(self.caps.layer))?;
        self.written += 1;
        let temporary = self.staging.join(format!("file-{}", self.written));
        let digest = write(entry, size, &temporary)?;
        std::fs::rename(&temporary, self.staging.join(digest.hex())).map_err(Refused::Disk)?;
        let mode = entry.header().mode().unwrap_or_default();
        Ok(Stored {
            digest: digest.to_string(),
            size,
            is_program: mode & EXECUTABLE != 0,
        })
    }
}

fn write(entry: &mut impl Read, size: u64, to: &Path) -> Result<Digest, Refused> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true);
    let created = set_mode(options, 0o600).open(to);
    let mut file = created.map_err(Refused::Disk)?;
    let (mut hash, mut written) = (Sha256::new(), 0_u64);
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let length = entry.read(&mut buffer).map_err(refused)?;
        if length == 0 {
            break;
        }
        hash.update(&buffer[..length]);
        file.write_all(&buffer[..length]).map_err(Refused::Disk)?;
        written += length as u64;
    }
    if written != size {
        return Err(refused(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Digest::from_hash(hash.finalize()))
}

/// A path from the root of the image, without empty parts.
fn normal(path: &str) -> Result<String, Refused> {
    if path.len() > LONGEST_PATH {
        return Err(Refused::Path);
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(Refused::Outside(path.to_owned())),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Where a link leads, from the root of the image: like in a container, nothing is above it.
fn target(path: &str, link: &str, kind: EntryType) -> Result<String, Refused> {
    if link.len() > LONGEST_PATH {
        return Err(Refused::Path);
    }
    let is_relative = kind == EntryType::Symlink && !link.starts_with('/');
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut parts: Vec<&str> = if is_relative {
        directory.split('/').collect()
    } else {
        Vec::new()
    };
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    Ok(parts.join("/"))
}

/// What an entry removes from the layers below, if it is a whiteout.
fn whiteout(path: &str) -> Option<Hidden> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    if name == OPAQUE {
        return Some(Hidden::Below(directory.to_owned()));
    }
    let gone = name.strip_prefix(WHITEOUT)?;
    Some(Hidden::Tree(match directory {
        "" => gone.to_owned(),
        directory => format!("{directory}/{gone}"),
    }))
}

fn refused(error: io::Error) -> Refused {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Refused::Layer,
        _ => Refused::Archive(error),
    }
}
