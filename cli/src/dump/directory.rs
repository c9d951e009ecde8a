//! Where a dump is written: `namespaces/<namespace>/<resource>/<name>.yaml`, `cluster/<resource>/<name>.yaml`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::redact::redacted;

/// The archive of all files.
const ARCHIVE: &str = "hypershift-dump.tar.gz";

/// A directory of files that are written once.
#[derive(Debug)]
pub(super) struct Directory {
    root: PathBuf,
}

// === impl Directory ===

impl Directory {
    /// A directory that is empty, so that old dumps and new ones are not mixed.
    pub(super) fn create(root: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        let entries =
            fs::read_dir(root).with_context(|| format!("cannot read {}", root.display()))?;
        if entries.count() > 0 {
            bail!(
                "--artifact-dir {}: it is not empty, name another one",
                root.display()
            );
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// A directory in this one.
    pub(super) fn below(&self, name: &str) -> anyhow::Result<Self> {
        Self::create(&self.root.join(name))
    }

    /// Writes everything in it to one archive beside the files.
    pub(super) fn archive(&self) -> anyhow::Result<PathBuf> {
        let path = self.root.join(ARCHIVE);
        self.write_archive(&path)
            .with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }

    fn write_archive(&self, path: &Path) -> std::io::Result<()> {
        let entries: Vec<_> = fs::read_dir(&self.root)?.collect::<Result<_, _>>()?;
        let mut archive = tar::Builder::new(GzEncoder::new(
            File::create_new(path)?,
            Compression::default(),
        ));
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            if entry.file_type()?.is_dir() {
                archive.append_dir_all(name, path)?;
            } else {
                archive.append_path_with_name(path, name)?;
            }
        }
        archive.into_inner()?.finish()?.sync_all()
    }

    /// Writes an object without secrets.
    pub(super) fn object(
        &self,
        namespace: Option<&str>,
        resource: &str,
        object: &Value,
    ) -> anyhow::Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or("unnamed");
        let text = serde_saphyr::to_string(&redacted(object.clone()))?;
        self.write(
            namespace,
            resource,
            &format!("{name}.yaml"),
            text.as_bytes(),
        )
    }

    /// Writes a file.
    pub(super) fn write(
        &self,
        namespace: Option<&str>,
        resource: &str,
        file: &str,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        let within = match namespace {
            Some(namespace) => self.root.join("namespaces").join(safe(namespace)),
            None => self.root.join("cluster"),
        };
        let within = within.join(safe(resource));
        let path = within.join(safe(file));
        fs::create_dir_all(&within)
            .and_then(|()| fs::write(&path, bytes))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A file name that is valid on every system, and another one for each name: names of roles have colons, and may have
/// slashes.
fn safe(name: &str) -> String {
    let is_invalid = |c: char| "<>:\"/\\|?*%".contains(c) || c.is_ascii_control();
    let mut safe = String::with_capacity(name.len());
    for c in name.trim_start_matches('.').chars() {
        if is_invalid(c) {
            // A String takes everything.
            let _ = write!(safe, "%{:02X}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_stay_in_the_directory() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("dump");
        let directory = Directory::create(&root).unwrap();
        let object = json!({ "metadata": { "name": "../../system:a" } });
        directory.object(Some("ns"), "roles", &object).unwrap();
        let file = "namespaces/ns/roles/%2F..%2Fsystem%3Aa.yaml";
        assert!(root.join(file).exists());
        let error = Directory::create(&root).unwrap_err();
        assert!(error.to_string().contains("not empty"), "{error}");
    }

    #[test]
    fn file_names_are_valid_on_every_system() {
        assert_eq!(safe("a-b.yaml"), "a-b.yaml");
        assert_eq!(safe("system:node|a?.yaml"), "system%3Anode%7Ca%3F.yaml");
        assert_ne!(safe("a:b"), safe("a%3Ab"));
    }

    #[test]
    fn the_archive_contains_all_files() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Directory::create(&parent.path().join("dump")).unwrap();
        let object = json!({ "metadata": { "name": "a" } });
        directory.object(Some("ns"), "roles", &object).unwrap();
        directory.object(None, "nodes", &object).unwrap();
        let archive = File::open(directory.archive().unwrap()).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .filter(|entry| entry.header().entry_type().is_file())
            .map(|entry| entry.path().unwrap().display().to_string())
            .collect();
        files.sort();
        assert_eq!(
            files,
            ["cluster/nodes/a.yaml", "namespaces/ns/roles/a.yaml"]
        );
    }
}
