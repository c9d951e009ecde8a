//! What is kept of a release image: two files, its labels and its architectures; in memory, and in a directory.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use serde::{Deserialize, Serialize};

use crate::boot_images::Streams;
use crate::error::{Error, Reason};
use crate::image_references::{self, ImageReferences};
use crate::reference::Digest;

/// Where a release has its boot images.
pub(crate) const BOOT_IMAGES: &str = "release-manifests/0000_50_installer_coreos-bootimages.yaml";
/// The files that are read of an image.
pub(crate) const FILES: [&str; 2] = [image_references::PATH, BOOT_IMAGES];
/// How many releases are kept in a directory.
const MOST_KEPT: usize = 64;

/// What was read, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Raw {
    pub(crate) architectures: PayloadArch,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) image_references: String,
    pub(crate) boot_images: Option<String>,
}

/// What was read, parsed.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The size of what was parsed, as memory accounts for it.
    pub(crate) bytes: usize,
    pub(crate) architectures: PayloadArch,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) references: ImageReferences,
    pub(crate) boot_images: Streams,
}

/// A directory with releases that were read before.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    path: PathBuf,
}

/// How much more memory parsed JSON takes than its text.
const PARSED: usize = 4;

// === impl Raw ===

impl Raw {
    fn bytes(&self) -> usize {
        let labels = self
            .labels
            .iter()
            .map(|(key, value)| key.len() + value.len());
        let boot_images = self.boot_images.as_ref().map_or(0, String::len);
        self.image_references.len() + boot_images + labels.sum::<usize>()
    }

    /// The files of an image.
    pub(crate) fn of(
        image: &str,
        architectures: Option<PayloadArch>,
        labels: BTreeMap<String, String>,
        mut files: BTreeMap<&'static str, Vec<u8>>,
    ) -> Result<Self, Error> {
        let not_a_payload = |detail: &str| Error::new(image, Reason::NotAPayload, detail);
        let references = files.remove(image_references::PATH).ok_or_else(|| {
            not_a_payload("it is not a release image: it has no release-manifests/image-references")
        })?;
        let text = |bytes| {
            String::from_utf8(bytes).map_err(|_| not_a_payload("one of its manifests is not UTF-8"))
        };
        let boot_images = files.remove(BOOT_IMAGES).map(text).transpose()?;
        Ok(Self {
            architectures: architectures
                .ok_or_else(|| not_a_payload("its architecture is unknown"))?,
            labels,
            image_references: text(references)?,
            boot_images,
        })
    }

    /// Parses the files.
    pub(crate) fn parse(&self, image: &str) -> Result<Contents, Error> {
        let invalid = |error: String| Error::new(image, Reason::NotAPayload, error);
        let references = ImageReferences::parse(self.image_references.as_bytes())
            .map_err(|error| invalid(error.to_string()).caused_by(error))?;
        let boot_images = self.boot_images.as_deref().map(Streams::parse).transpose();
        let boot_images =
            boot_images.map_err(|error| invalid(error.to_string()).caused_by(error))?;
        Ok(Contents {
            bytes: self.bytes() * PARSED,
            architectures: self.architectures,
            labels: self.labels.clone(),
            references,
            boot_images: boot_images.unwrap_or_default(),
        })
    }
}

// === impl Directory ===

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// What was read of this image. A damaged file is ignored.
    pub(crate) fn load(&self, digest: &Digest) -> Option<Raw> {
        let bytes = std::fs::read(self.file(digest)).ok()?;
        let (sum, json) = bytes.split_at_checked(Digest::of(b"").as_str().len())?;
        if sum != Digest::of(json).as_str().as_bytes() {
            return None;
        }
        serde_json::from_slice(json).ok()
    }

    /// Stores what was read, atomically.
    pub(crate) fn store(&self, digest: &Digest, raw: &Raw) -> io::Result<()> {
        std::fs::create_dir_all(&self.path)?;
        let json = serde_json::to_vec(raw).map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
        file.write_all(Digest::of(&json).as_str().as_bytes())?;
        file.write_all(&json)?;
        file.persist(self.file(digest))?;
        self.prune()
    }

    /// Removes all but the newest.
    fn prune(&self) -> io::Result<()> {
        let mut kept: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry
                .path()
                .extension()
                .is_some_and(|name| name == "release")
            {
                kept.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        kept.sort();
        let excess = kept.len().saturating_sub(MOST_KEPT);
        kept[..excess]
            .iter()
            .try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    fn file(&self, digest: &Digest) -> PathBuf {
        Path::new(&self.path).join(format!("{}.release", digest.hex()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> Raw {
        Raw {
            architectures: PayloadArch::Multi,
            labels: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            image_references: "{}".to_owned(),
            boot_images: None,
        }
    }

    #[test]
    fn stored_contents_are_read_unless_malformed() {
        let home = tempfile::tempdir().unwrap();
        let kept = Directory::new(home.path().join("releases"));
        let digest = Digest::of(b"image");
        assert_eq!(kept.load(&digest), None);
        kept.store(&digest, &raw()).unwrap();
        assert_eq!(kept.load(&digest), Some(raw()));
        let path = kept.file(&digest);
        let mut bytes = std::fs::read(&path).unwrap();
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(kept.load(&digest), None, "byte {at}");
            bytes[at] ^= 1;
        }
        std::fs::write(&path, &bytes[..20]).unwrap();
        assert_eq!(kept.load(&digest), None);
    }

    #[test]
    fn a_directory_does_not_grow_without_end() {
        let home = tempfile::tempdir().unwrap();
        let kept = Directory::new(home.path().to_owned());
        std::fs::write(home.path().join("something-else"), "").unwrap();
        for number in 0..MOST_KEPT + 5 {
            let digest = Digest::of(&number.to_le_bytes());
            kept.store(&digest, &raw()).unwrap();
        }
        let entries = std::fs::read_dir(home.path()).unwrap().count();
        assert_eq!(entries, MOST_KEPT + 1);
    }

    #[test]
    fn an_image_without_references_is_no_release() {
        let error = Raw::of(
            "registry.example.com/x:1",
            None,
            BTreeMap::new(),
            BTreeMap::new(),
        );
        let error = error.unwrap_err();
        assert_eq!(error.kind(), Reason::NotAPayload);
        assert!(
            error.to_string().contains("registry.example.com/x:1"),
            "{error}"
        );
    }
}
