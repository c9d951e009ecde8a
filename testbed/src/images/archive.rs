//! An OCI image of one layer on nothing (`FROM scratch`): the same files give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::USER;

/// What is in an image.
#[derive(Debug)]
pub struct Contents {
    /// The program that it runs.
    pub entrypoint: String,
    /// Its default arguments.
    pub command: &'static [&'static str],
    /// The files.
    pub files: Vec<File>,
}

/// A file in an image.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path in the image.
    pub at: String,
    content: Content,
    mode: u32,
}

/// What a file holds.
#[derive(Debug, Clone)]
enum Content {
    /// What a file of this machine holds.
    Copy(PathBuf),
    /// These bytes.
    Bytes(Vec<u8>),
    /// The way to another file.
    Link(String),
}

/// An image, ready to be pushed. Copies share the layer.
#[derive(Debug, Clone)]
pub struct Archive {
    /// The layer, not compressed: it travels within one machine.
    pub layer: Blob,
    /// The configuration.
    pub config: Blob,
    /// The manifest, which names both.
    pub manifest: Blob,
}

/// Bytes and their digest.
#[derive(Debug, Clone)]
pub struct Blob {
    /// The media type.
    pub kind: &'static str,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The bytes.
    pub bytes: Bytes,
}

// === impl File ===

impl File {
    /// A program.
    pub fn program(at: impl Into<String>, from: impl Into<PathBuf>) -> Self {
        Self {
            at: at.into(),
            content: Content::Copy(from.into()),
            mode: 0o755,
        }
    }

    /// A file that is only read, at the same path as here.
    pub fn data(path: &str) -> Self {
        Self::copy(path, path)
    }

    /// A file that is only read, from another path.
    pub fn copy(at: impl Into<String>, from: impl Into<PathBuf>) -> Self {
        Self {
            at: at.into(),
            content: Content::Copy(from.into()),
            mode: 0o644,
        }
    }

    /// A file that is only read, and that is nowhere yet.
    pub fn text(at: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            at: at.into(),
            content: Content::Bytes(bytes.into()),
            mode: 0o644,
        }
    }

    /// A file that each user may write.
    pub fn shared(at: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o666,
            ..Self::text(at, bytes)
        }
    }

    /// A program that is a text for a shell.
    pub fn script(at: impl Into<String>, text: &str) -> Self {
        Self {
            mode: 0o755,
            ..Self::text(at, text)
        }
    }

    /// A symbolic link.
    pub fn link(at: impl Into<String>, to: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            content: Content::Link(to.into()),
            mode: 0o777,
        }
    }

    /// Whether what it holds can be had.
    pub fn exists(&self) -> bool {
        match &self.content {
            Content::Copy(from) => from.exists(),
            Content::Bytes(_) | Content::Link(_) => true,
        }
    }
}

// === impl Archive ===

impl Archive {
    /// Puts an image together.
    pub fn of(contents: &Contents) -> Result<Self> {
        let layer = Blob::new("application/vnd.oci.image.layer.v1.tar", layer(contents)?);
        let config = json!({
            "User": USER,
            "Entrypoint": [contents.entrypoint],
            "Cmd": contents.command,
            "WorkingDir": "/",
        });
        Ok(Self::with(layer, &config))
    }

    /// The same files, run by another entry point and with one variable more.
    #[must_use]
    pub fn variant(&self, entrypoint: &str, variable: &str) -> Self {
        let config = json!({
            "User": USER,
            "Entrypoint": [entrypoint],
            "Env": [variable],
            "WorkingDir": "/",
        });
        Self::with(self.layer.clone(), &config)
    }

    /// The same image with one variable more: another image, of the same layer.
    #[must_use]
    pub fn with_variable(&self, variable: &str) -> Self {
        let mut config = self.settings();
        let known = config["Env"].as_array().cloned().unwrap_or_default();
        let added = known.into_iter().chain([json!(variable)]);
        config["Env"] = added.collect();
        Self::with(self.layer.clone(), &config)
    }

    /// The same image with these labels beside those that it has.
    #[must_use]
    pub fn with_labels(&self, labels: &BTreeMap<String, String>) -> Self {
        if labels.is_empty() {
            return self.clone();
        }
        let mut config = self.settings();
        for (label, value) in labels {
            config["Labels"][label] = json!(value);
        }
        Self::with(self.layer.clone(), &config)
    }

    /// The same image for another architecture than `amd64`: nothing of it is run.
    #[must_use]
    pub fn for_architecture(&self, architecture: &str) -> Self {
        Self::of_architecture(self.layer.clone(), &self.settings(), architecture)
    }

    /// How it is run.
    fn settings(&self) -> Value {
        let mut whole: Value = serde_json::from_slice(&self.config.bytes)
            .expect("invariant: the configuration was written here");
        whole["config"].take()
    }

    fn with(layer: Blob, config: &Value) -> Self {
        Self::of_architecture(layer, config, "amd64")
    }

    fn of_architecture(layer: Blob, config: &Value, architecture: &str) -> Self {
        let config = Blob::json(
            "application/vnd.oci.image.config.v1+json",
            &json!({
                "architecture": architecture,
                "os": "linux",
                "config": config,
                "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
            }),
        );
        let manifest = "application/vnd.oci.image.manifest.v1+json";
        let manifest = Blob::json(
            manifest,
            &json!({
                "schemaVersion": 2,
                "mediaType": manifest,
                "config": config.descriptor(),
                "layers": [layer.descriptor()],
            }),
        );
        Self {
            layer,
            config,
            manifest,
        }
    }

    /// What it weighs.
    pub fn size(&self) -> usize {
        self.layer.bytes.len() + self.config.bytes.len() + self.manifest.bytes.len()
    }
}

// === impl Blob ===

impl Blob {
    fn new(kind: &'static str, bytes: Vec<u8>) -> Self {
        Self {
            kind,
            digest: format!("sha256:{:x}", Sha256::digest(&bytes)),
            bytes: bytes.into(),
        }
    }

    fn json(kind: &'static str, value: &Value) -> Self {
        Self::new(kind, value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({ "mediaType": self.kind, "digest": self.digest, "size": self.bytes.len() })
    }
}

fn layer(contents: &Contents) -> Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    for directory in directories(&contents.files) {
        // As everywhere, each user may write below /tmp.
        let mode = if directory.starts_with("tmp") {
            0o1777
        } else {
            0o755
        };
        let header = header(tar::EntryType::Directory, mode, 0);
        append(&mut layer, header, &directory, &[])?;
    }
    for file in &contents.files {
        match &file.content {
            Content::Copy(from) => {
                let bytes = std::fs::read(from)
                    .with_context(|| format!("cannot read {}", from.display()))?;
                regular(&mut layer, file, &bytes)?;
            }
            Content::Bytes(bytes) => regular(&mut layer, file, bytes)?,
            Content::Link(to) => link(&mut layer, file, to)?,
        }
    }
    layer.into_inner().context("cannot write an image's layer")
}

fn regular(layer: &mut tar::Builder<Vec<u8>>, file: &File, bytes: &[u8]) -> Result<()> {
    let size = u64::try_from(bytes.len()).context("a file is larger than any image")?;
    let header = header(tar::EntryType::Regular, file.mode, size);
    append(layer, header, relative(&file.at), bytes)
}

fn link(layer: &mut tar::Builder<Vec<u8>>, file: &File, to: &str) -> Result<()> {
    let mut header = header(tar::EntryType::Symlink, file.mode, 0);
    layer
        .append_link(&mut header, relative(&file.at), to)
        .with_context(|| format!("cannot add {} to an image's layer", file.at))
}

/// The directories above all files, the outer before the inner.
fn directories(files: &[File]) -> BTreeSet<PathBuf> {
    let above = files
        .iter()
        .flat_map(|file| relative(&file.at).ancestors().skip(1));
    above
        .filter(|path| !path.as_os_str().is_empty())
        .map(Path::to_owned)
        .collect()
}

fn relative(path: &str) -> &Path {
    Path::new(path.trim_start_matches('/'))
}

/// Without times and names of users, which would differ from build to build.
fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn append(
    layer: &mut tar::Builder<Vec<u8>>,
    mut header: tar::Header,
    path: &Path,
    bytes: &[u8],
) -> Result<()> {
    layer
        .append_data(&mut header, path, bytes)
        .with_context(|| format!("cannot add {} to an image's layer", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(file: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
    }

    fn contents() -> Contents {
        Contents {
            entrypoint: "/program".to_owned(),
            command: &["serve"],
            files: vec![
                File::program("/program", here("README.md")),
                File::text("/etc/deep/Cargo.toml", "[package]"),
                File::link("/bin/program", "/program"),
            ],
        }
    }

    #[test]
    fn the_same_files_give_the_same_image() {
        let (one, two) = (
            Archive::of(&contents()).unwrap(),
            Archive::of(&contents()).unwrap(),
        );
        assert_eq!(one.manifest.digest, two.manifest.digest);
        let manifest: Value = serde_json::from_slice(&one.manifest.bytes).unwrap();
        assert_eq!(manifest["layers"][0]["digest"], one.layer.digest);
        let config: Value = serde_json::from_slice(&one.config.bytes).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], one.layer.digest);
        assert_eq!(config["config"]["User"], USER);
    }

    #[test]
    fn a_variant_is_another_image_of_the_same_files() {
        let one = Archive::of(&contents()).unwrap();
        let two = one.variant("/bin/program", "VERSION=2");
        assert_eq!(one.layer.digest, two.layer.digest);
        assert_ne!(one.manifest.digest, two.manifest.digest);
    }

    #[test]
    fn a_layer_holds_the_files_with_their_modes_and_directories() {
        let archive = Archive::of(&contents()).unwrap();
        let mut layer = tar::Archive::new(archive.layer.bytes.as_ref());
        let entries: Vec<_> = layer
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                (
                    entry.path().unwrap().display().to_string(),
                    header.mode().unwrap(),
                )
            })
            .collect();
        let expected = [
            ("bin", 0o755),
            ("etc", 0o755),
            ("etc/deep", 0o755),
            ("program", 0o755),
            ("etc/deep/Cargo.toml", 0o644),
            ("bin/program", 0o777),
        ];
        assert_eq!(
            entries,
            expected.map(|(path, mode)| (path.to_owned(), mode))
        );
    }
}
