//! Parts of a file: how large they are (pure), and reading them.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;

use super::Error;

/// A file that is read in parts of the same size; the last one may be smaller.
#[derive(Debug)]
pub(super) struct Parts {
    file: File,
    path: String,
    /// Bytes of the file.
    pub(super) size: u64,
    part: u64,
    read: u64,
}

/// Size of each part, in bytes: the usual size, or more if the store accepts no more than `most` parts.
pub(super) fn part_size(size: u64, usual: u64, most: u64) -> u64 {
    usual.max(size.div_ceil(most))
}

// === impl Parts ===

impl Parts {
    /// Opens a file.
    pub(super) fn open(path: &Path, usual: u64, most: u64) -> Result<Self, Error> {
        let failed = |source| Error::File {
            path: path.display().to_string(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        Ok(Self {
            file,
            path: path.display().to_string(),
            size,
            part: part_size(size, usual, most),
            read: 0,
        })
    }

    /// Whether the file fits into one part.
    pub(super) fn is_single(&self) -> bool {
        self.size <= self.part
    }

    /// The next part; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let length = self.part.min(self.size - self.read);
        if length == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let read = (&self.file).take(length).read_to_end(&mut bytes);
        let complete = read.and_then(|read| {
            if read as u64 == length {
                Ok(())
            } else {
                Err(std::io::ErrorKind::UnexpectedEof.into())
            }
        });
        complete.map_err(|source| Error::File {
            path: self.path.clone(),
            source,
        })?;
        self.read += length;
        Ok(Some(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_many_as_the_store_accepts() {
        for (size, expected) in [(0, 16), (16, 16), (160, 16), (161, 17), (1_000, 100)] {
            assert_eq!(part_size(size, 16, 10), expected, "{size}");
        }
    }

    #[test]
    fn parts_are_the_whole_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for size in [0_usize, 1, 16, 17, 33] {
            let content: Vec<u8> = (0..size).map(|at| u8::try_from(at).unwrap()).collect();
            std::fs::write(file.path(), &content).unwrap();
            let mut parts = Parts::open(file.path(), 16, 100).unwrap();
            assert_eq!(parts.is_single(), size <= 16, "{size}");
            let mut found = Vec::new();
            while let Some(part) = parts.next().unwrap() {
                assert!(part.len() <= 16);
                found.extend_from_slice(&part);
            }
            assert_eq!(found, content, "{size}");
        }
        // A file that becomes shorter meanwhile is an error, and no shorter object.
        let mut parts = Parts::open(file.path(), 16, 100).unwrap();
        std::fs::write(file.path(), "short").unwrap();
        assert!(parts.next().is_err());
    }
}
