//! Finds files in a layer of an image while it is downloaded; only the requested files are kept.

mod zstd;

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

/// The largest file that is taken out of a layer.
const LARGEST_FILE: u64 = 4 << 20;
/// The largest layer, uncompressed.
const LARGEST_LAYER: u64 = 8 << 30;
/// The prefix of a whiteout: the file is deleted from the layers below.
const WHITEOUT: &str = ".wh.";
/// An opaque whiteout: the directory's content is deleted from the layers below.
const OPAQUE: &str = ".wh..wh..opq";

/// The requested files of a layer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Files and their content.
    pub(crate) files: BTreeMap<&'static str, Vec<u8>>,
    /// Files that layers below may have, and the image does not.
    pub(crate) gone: Vec<&'static str>,
}

/// Why a layer cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It is not an archive.
    #[error("a layer is not an archive")]
    Archive(#[source] io::Error),
    /// It is too large.
    #[error("a layer unpacks to more than 8 GiB")]
    Layer,
    /// A file is too large.
    #[error("{0} is larger than 4 MiB")]
    File(&'static str),
}

/// Counts what is read, and stops at a limit.
struct Limited<R> {
    source: R,
    left: u64,
}

/// Scans a layer for files, with any compression. Stops when all are found.
pub(crate) fn scan(layer: impl Read, desired: &[&'static str]) -> Result<Found, Unreadable> {
    let mut archive = Archive::new(open(layer).map_err(Unreadable::Archive)?);
    let mut found = Found::default();
    // Raw: the requested files have short names, and long ones would be held in memory.
    for entry in archive.entries().map_err(unreadable)?.raw(true) {
        let entry = entry.map_err(unreadable)?;
        take(entry, desired, &mut found)?;
        if found.files.len() == desired.len() {
            break;
        }
    }
    found.gone.retain(|name| !found.files.contains_key(name));
    Ok(found)
}

/// Opens a layer with any compression. Reading fails with [`io::ErrorKind::FileTooLarge`] when it is too large.
pub(crate) fn open<'a>(layer: impl Read + 'a) -> io::Result<impl Read + 'a> {
    Ok(Limited {
        source: unpacked(BufReader::new(layer))?,
        left: LARGEST_LAYER,
    })
}

/// Decompresses by the first bytes: media types are not always right.
fn unpacked<'a>(mut layer: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    // A registry may send them one by one.
    let mut magic = Vec::new();
    layer.by_ref().take(4).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let layer = io::Cursor::new(magic).chain(layer);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(layer))
    } else if is_zstd {
        Box::new(zstd::Decoder::new(layer))
    } else {
        Box::new(layer)
    })
}

fn take(
    mut entry: Entry<'_, impl Read>,
    desired: &[&'static str],
    found: &mut Found,
) -> Result<(), Unreadable> {
    let Some(path) = path_of(&entry) else {
        return Ok(());
    };
    if let Some(&name) = desired.iter().find(|&&name| name == path) {
        if entry.header().entry_type() == EntryType::Regular {
            found.files.insert(name, content(&mut entry, name)?);
        }
        return Ok(());
    }
    let hidden = desired.iter().filter(|name| hides(&path, name));
    found.gone.extend(hidden);
    Ok(())
}

/// Its path from the image's root; nothing if it is not UTF-8.
fn path_of(entry: &Entry<'_, impl Read>) -> Option<String> {
    let bytes = entry.path_bytes();
    let path = std::str::from_utf8(&bytes).ok()?;
    let path = path.trim_start_matches("./").trim_matches('/');
    Some(path.to_owned())
}

fn content(entry: &mut Entry<'_, impl Read>, name: &'static str) -> Result<Vec<u8>, Unreadable> {
    let size = entry.size();
    if size > LARGEST_FILE {
        return Err(Unreadable::File(name));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()) != Ok(size) {
        return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

/// Whether an entry of a layer deletes a file of the layers below.
fn hides(path: &str, name: &str) -> bool {
    let (directory, last) = path.rsplit_once('/').unwrap_or(("", path));
    let within = |directory: &str| {
        let rest = name.strip_prefix(directory);
        directory.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
    };
    if last == OPAQUE {
        return within(directory);
    }
    let Some(gone) = last.strip_prefix(WHITEOUT) else {
        return false;
    };
    let gone = match directory {
        "" => gone.to_owned(),
        directory => format!("{directory}/{gone}"),
    };
    name == gone || within(&gone)
}

fn unreadable(error: io::Error) -> Unreadable {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Unreadable::Layer,
        _ => Unreadable::Archive(error),
    }
}

// === impl Limited ===

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
