//! Images, as tools that build releases write them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use payload::reference::Digest;
use serde_json::{Value, json};

/// Bytes that a registry has.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
}

/// An image: its manifest and what that names.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    pub(crate) manifest: Blob,
    pub(crate) blobs: Vec<Blob>,
}

impl Blob {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let digest = Digest::of(&bytes).to_string();
        Self { digest, bytes }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({ "mediaType": "application/octet-stream", "digest": self.digest, "size": self.bytes.len() })
    }
}

impl Image {
    /// Layers from the bottom up.
    pub(crate) fn new(architecture: &str, labels: &Value, layers: &[&[(&str, &[u8])]]) -> Self {
        let layers: Vec<Blob> = layers.iter().map(|files| layer(files)).collect();
        let config =
            json!({ "architecture": architecture, "os": "linux", "config": { "Labels": labels } });
        let config = Blob::json(&config);
        let descriptors: Vec<Value> = layers.iter().map(Blob::descriptor).collect();
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": descriptors,
        }));
        let mut blobs = layers;
        blobs.push(config);
        Self { manifest, blobs }
    }

    /// A release of this version, with a component at this host and something large beneath.
    pub(crate) fn release(version: &str, host: &str) -> Self {
        Self::release_for("amd64", version, host)
    }

    pub(crate) fn release_for(architecture: &str, version: &str, host: &str) -> Self {
        let references = json!({
            "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
            "metadata": { "name": version },
            "spec": { "tags": [{
                "name": "etcd",
                "annotations": { "io.openshift.build.versions": "etcd=3.6.5" },
                "from": { "kind": "DockerImage", "name": format!("{host}/etcd@sha256:{}", "1".repeat(64)) },
            }] },
        });
        let stream = json!({ "stream": "rhcos", "architectures": { "x86_64": { "images": {
            "aws": { "regions": { "us-east-1": { "release": "1", "image": "ami-1" } } } } } } });
        let boot_images = format!("kind: ConfigMap\ndata:\n  stream: |\n    {stream}\n");
        // What cannot be packed: the layer is sent in many pieces.
        let noise: Vec<u8> = (0..300_000_u32)
            .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0])
            .collect();
        Self::new(
            architecture,
            &json!({ "io.openshift.release": version }),
            &[
                &[("usr/bin/noise", &noise)],
                &[
                    (
                        "release-manifests/image-references",
                        references.to_string().as_bytes(),
                    ),
                    (
                        "release-manifests/0000_50_installer_coreos-bootimages.yaml",
                        boot_images.as_bytes(),
                    ),
                ],
            ],
        )
    }

    /// The lowest layer.
    pub(crate) fn base(&self) -> &str {
        &self.blobs[0].digest
    }

    /// The layer with the manifests.
    pub(crate) fn top(&self) -> &str {
        &self.blobs[1].digest
    }
}

fn layer(files: &[(&str, &[u8])]) -> Blob {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    let mut encoder = archive.into_inner().unwrap();
    encoder.flush().unwrap();
    Blob::new(encoder.finish().unwrap())
}
