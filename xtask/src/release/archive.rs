//! Archives and their checksums: the same bytes for the same files.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

/// The value of a gzip header for an unknown operating system: the builder's is not written.
const ANY_SYSTEM: u8 = 255;

/// A file of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) mode: u32,
    pub(super) bytes: &'a [u8],
}

/// A compressed archive. It has no times and no owners.
pub(super) fn pack(files: &[File<'_>]) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().operating_system(ANY_SYSTEM);
    let mut archive = tar::Builder::new(gzip.write(Vec::new(), Compression::best()));
    for File { name, mode, bytes } in files {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(*mode);
        header.set_size(u64::try_from(bytes.len()).context("a file is too large")?);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive
            .append_data(&mut header, name, *bytes)
            .with_context(|| format!("failed to add {name} to the archive"))?;
    }
    let gzip = archive
        .into_inner()
        .context("failed to finish the archive")?;
    gzip.finish().context("failed to compress the archive")
}

/// The lines of `SHA256SUMS` with those of new files. Lines of other files stay: platforms may be built one at a time.
pub(super) fn checksums(earlier: &str, written: &BTreeMap<String, Vec<u8>>) -> String {
    let lines = earlier.lines().filter_map(|line| line.split_once("  "));
    let lines = lines.map(|(sum, name)| (name.to_owned(), sum.to_owned()));
    let mut sums: BTreeMap<_, _> = lines.collect();
    let new = written.iter();
    sums.extend(new.map(|(name, bytes)| (name.clone(), format!("{:x}", Sha256::digest(bytes)))));
    let lines = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    const FILES: [File<'static>; 2] = [
        File {
            name: "hcp",
            mode: 0o755,
            bytes: b"program",
        },
        File {
            name: "LICENSE",
            mode: 0o644,
            bytes: b"license",
        },
    ];

    #[test]
    fn the_same_files_give_the_same_archive() {
        let bytes = pack(&FILES).unwrap();
        assert_eq!(bytes, pack(&FILES).unwrap());
        // The time and the system of the header.
        assert_eq!((&bytes[4..8], bytes[9]), (&[0; 4][..], ANY_SYSTEM));
    }

    #[test]
    fn archives_contain_the_files_with_their_modes() {
        let bytes = pack(&FILES).unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            let path = entry.path().unwrap().display().to_string();
            found.push((path, header.mode().unwrap(), text));
        }
        let expected = FILES.map(|File { name, mode, bytes }| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            (name.to_owned(), mode, text)
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn checksums_of_other_files_stay() {
        let earlier = "00  hcp-windows-amd64.tar.gz\n11  hcp-linux-amd64.tar.gz\n";
        let name = "hcp-linux-amd64.tar.gz".to_owned();
        let written = BTreeMap::from([(name, b"one".to_vec())]);
        assert_eq!(
            checksums(earlier, &written),
            "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  hcp-linux-amd64.tar.gz\n\
             00  hcp-windows-amd64.tar.gz\n"
        );
        assert_eq!(checksums("", &BTreeMap::new()), "");
    }
}
