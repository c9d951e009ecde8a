//! An image as one file: a tar of an OCI image layout, which `skopeo copy oci-archive:` and `podman load` read.

use anyhow::{Context, Result};
use serde_json::json;
use testbed::images::{Archive, Blob};

/// The file's bytes: the same for the same image.
pub(super) fn tar(archive: &Archive) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    let version = json!({ "imageLayoutVersion": "1.0.0" }).to_string();
    append(&mut tar, "oci-layout", version.as_bytes())?;
    append(&mut tar, "index.json", index(&archive.manifest).as_bytes())?;
    for blob in [&archive.manifest, &archive.config, &archive.layer] {
        append(&mut tar, &path(blob), &blob.bytes)?;
    }
    tar.into_inner().context("failed to finish the archive")
}

fn index(manifest: &Blob) -> String {
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": manifest.kind,
            "digest": manifest.digest,
            "size": manifest.bytes.len(),
        }],
    });
    index.to_string()
}

fn path(blob: &Blob) -> String {
    format!("blobs/{}", blob.digest.replace(':', "/"))
}

fn append(tar: &mut tar::Builder<Vec<u8>>, path: &str, bytes: &[u8]) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(u64::try_from(bytes.len()).context("a file is too large")?);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    tar.append_data(&mut header, path, bytes)
        .with_context(|| format!("failed to add {path} to the archive"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use serde_json::Value;
    use sha2::{Digest, Sha256};
    use testbed::images::{Contents, File};

    use super::*;

    fn archive() -> Archive {
        let contents = Contents {
            entrypoint: "/program".to_owned(),
            command: &["run"],
            files: vec![File::script("/program", "#!/bin/sh\n")],
        };
        Archive::of(&contents).unwrap()
    }

    #[test]
    fn the_index_references_every_blob_by_digest() {
        let bytes = tar(&archive()).unwrap();
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(path, content);
        }
        let blob = |digest: &Value| {
            let (_, hash) = digest.as_str().unwrap().split_once(':').unwrap();
            let content = &files[&format!("blobs/sha256/{hash}")];
            assert_eq!(format!("{:x}", Sha256::digest(content)), hash);
            content
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let manifest = blob(&index["manifests"][0]["digest"]);
        let manifest: Value = serde_json::from_slice(manifest).unwrap();
        blob(&manifest["config"]["digest"]);
        blob(&manifest["layers"][0]["digest"]);
    }

    #[test]
    fn the_same_image_gives_the_same_file() {
        assert_eq!(tar(&archive()).unwrap(), tar(&archive()).unwrap());
    }
}
