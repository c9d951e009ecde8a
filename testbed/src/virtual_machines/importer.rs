//! Fills volumes as the importer does: an image is read in full, from the testbed's registry.

use anyhow::{Context, Result, bail, ensure};
use http::{Request, StatusCode, header};
use serde_json::Value;

use crate::raw::RawClient;
use crate::registry::{self, Registry};

/// The form of the manifests that the testbed pushes.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Reads images.
#[derive(Debug)]
pub(super) struct Importer {
    registry: RawClient,
}

// === impl Importer ===

impl Importer {
    pub(super) fn new(registry: &Registry) -> Result<Self> {
        let server = format!("http://{}", registry.address());
        Ok(Self {
            registry: RawClient::new(&server, None)?,
        })
    }

    /// Reads the image of a URL: its manifest, and all that is named there.
    pub(super) async fn import(&self, url: &str) -> Result<()> {
        let read = async {
            let (name, reference) = image(url)?;
            let manifest = self
                .read(&format!("/v2/{name}/manifests/{reference}"))
                .await?;
            let manifest: Value =
                serde_json::from_slice(&manifest).context("its manifest is not JSON")?;
            for digest in blobs(&manifest)? {
                self.read(&format!("/v2/{name}/blobs/{digest}")).await?;
            }
            anyhow::Ok(())
        };
        read.await.with_context(|| format!("cannot import {url}"))
    }

    async fn read(&self, path: &str) -> Result<Vec<u8>> {
        let request = Request::get(path)
            .header(header::ACCEPT, MANIFEST)
            .body(Vec::new())
            .with_context(|| format!("{path:?} is not a path"))?;
        let response = self.registry.send(request).await?;
        let status = response.status;
        let read = response.bytes().await?;
        ensure!(
            status == StatusCode::OK,
            "the registry returns {status} for {path}: {}",
            String::from_utf8_lossy(&read)
        );
        Ok(read)
    }
}

/// The repository of an image in the testbed's registry, and its digest. A tag may become another image.
fn image(url: &str) -> Result<(&str, &str)> {
    let Some(reference) = url.strip_prefix("docker://") else {
        bail!("it is not in a registry: only images by docker://... can be imported here");
    };
    let path = reference.strip_prefix(registry::NAME);
    let path = path.and_then(|path| path.strip_prefix('/'));
    let path = path.with_context(|| format!("it is not in {}", registry::NAME))?;
    path.rsplit_once('@').context("it has no digest")
}

/// The digests in a manifest.
fn blobs(manifest: &Value) -> Result<Vec<&str>> {
    let layers = manifest["layers"].as_array().context("it has no layers")?;
    let all = layers.iter().chain([&manifest["config"]]);
    let digests = all.map(|blob| blob["digest"].as_str().context("a blob has no digest"));
    digests.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_in_the_testbeds_registry_by_digest() {
        for (url, expected) in [
            (
                "docker://registry.testbed:5000/rhcos@sha256:a",
                Some(("rhcos", "sha256:a")),
            ),
            (
                "docker://registry.testbed:5000/a/b@sha256:a",
                Some(("a/b", "sha256:a")),
            ),
            ("docker://registry.testbed:5000/rhcos:latest", None),
            ("docker://registry.test/rhcos@sha256:a", None),
            ("https://a.test/rhcos.qcow2.gz", None),
        ] {
            assert_eq!(image(url).ok(), expected, "{url}");
        }
    }

    #[test]
    fn an_import_reads_all_blobs() {
        let manifest = json!({
            "config": { "digest": "sha256:c" },
            "layers": [{ "digest": "sha256:a" }, { "digest": "sha256:b" }],
        });
        let found = blobs(&manifest).unwrap();
        assert_eq!(found, ["sha256:a", "sha256:b", "sha256:c"]);
        assert!(blobs(&json!({ "layers": [{}] })).is_err());
        assert!(blobs(&json!({})).is_err());
    }
}
