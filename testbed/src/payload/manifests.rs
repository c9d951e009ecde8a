//! What is written in a release image: which image each tag leads to, and what machines boot from.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The image that machines of the fake cloud boot from.
pub const BOOT_IMAGE: &str = "ami-0c0c0c0c0c0c0c0c0";
/// The fake cloud's region.
pub const REGION: &str = "us-east-1";

/// The region of Cloud Object Storage with the image for machines of Power Virtual Server, the bucket, and the object.
pub const POWER_VS_IMAGE: [&str; 3] = ["jp-osa", "rhcos-powervs-images", "rhcos-testbed.ova.gz"];

/// The project of Google Cloud with the image for its machines, and the image's name.
pub const GOOGLE_CLOUD_IMAGE: [&str; 2] = ["rhcos-cloud", "rhcos-testbed"];

/// The URL of the disk for machines of OpenStack, and its SHA-256.
pub const OPENSTACK_DISK: [&str; 2] = [
    "https://images.example.com/rhcos-testbed-openstack.qcow2.gz",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
];

/// The file `image-references`: an `ImageStream` named as the version.
pub(super) fn image_references(
    version: &str,
    components: &BTreeMap<String, String>,
    kubernetes: &str,
) -> Value {
    let tags: Vec<Value> = components
        .iter()
        .map(|(tag, reference)| {
            json!({
                "name": tag,
                "annotations": annotations(tag, version, kubernetes),
                "from": { "kind": "DockerImage", "name": reference },
                "generation": null,
                "importPolicy": {},
                "referencePolicy": { "type": "Source" },
            })
        })
        .collect();
    json!({
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": { "name": version, "creationTimestamp": "2026-11-22T00:00:00Z" },
        "spec": { "lookupPolicy": { "local": false }, "tags": tags },
        "status": { "dockerImageRepository": "" },
    })
}

/// The versions of what is in an image, where that is not the release's own.
fn annotations(tag: &str, version: &str, kubernetes: &str) -> Value {
    let versions = match tag {
        "hyperkube" => format!("kubernetes={kubernetes}"),
        "machine-os-content" | "rhel-coreos" => format!("machine-os={version}"),
        _ => return json!({}),
    };
    json!({ "io.openshift.build.versions": versions })
}

/// The file `0000_50_installer_coreos-bootimages.yaml`: a `ConfigMap` with a stream of CoreOS images.
pub(super) fn boot_images(version: &str) -> Value {
    let release = format!("{version}-testbed");
    let [power_vs_region, bucket, object] = POWER_VS_IMAGE;
    let power_vs = json!({ "release": release, "bucket": bucket, "object": object });
    let [project, name] = GOOGLE_CLOUD_IMAGE;
    let [location, sha256] = OPENSTACK_DISK;
    let disk = json!({ "disk": { "location": location, "sha256": sha256 } });
    let stream = json!({
        "stream": "rhcos-testbed",
        "metadata": { "last-modified": "2026-11-22T00:00:00Z" },
        "architectures": {
            "x86_64": {
                "artifacts": {
                    "openstack": { "release": release, "formats": { "qcow2.gz": disk } },
                },
                "images": {
                    "aws": { "regions": { REGION: { "release": release, "image": BOOT_IMAGE } } },
                    "gcp": { "release": release, "project": project, "name": name },
                },
            },
            "ppc64le": {
                "artifacts": {},
                "images": { "powervs": { "regions": { power_vs_region: power_vs } } },
            },
        },
    });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": "openshift-machine-config-operator",
            "name": "coreos-bootimages",
        },
        "data": { "releaseVersion": version, "stream": stream.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_an_image_stream_of_the_version() {
        let components = BTreeMap::from([
            ("etcd".to_owned(), "r.test/etcd@sha256:1".to_owned()),
            (
                "hyperkube".to_owned(),
                "r.test/hyperkube@sha256:2".to_owned(),
            ),
        ]);
        let stream = image_references("4.22.0", &components, "1.35.4");
        assert_eq!(stream["metadata"]["name"], "4.22.0");
        assert_eq!(
            stream["spec"]["tags"][0]["from"]["name"],
            "r.test/etcd@sha256:1"
        );
        let versions = &stream["spec"]["tags"][1]["annotations"]["io.openshift.build.versions"];
        assert_eq!(versions, "kubernetes=1.35.4");
    }

    #[test]
    fn machines_have_images() {
        let text = boot_images("4.22.0")["data"]["stream"].clone();
        let stream: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        let aws = format!("images/aws/regions/{REGION}/image");
        for (path, expected) in [
            (aws.as_str(), BOOT_IMAGE),
            ("images/gcp/name", GOOGLE_CLOUD_IMAGE[1]),
            ("artifacts/openstack/release", "4.22.0-testbed"),
        ] {
            let found = stream.pointer(&format!("/architectures/x86_64/{path}"));
            assert_eq!(found.unwrap(), expected, "{path}");
        }
    }
}
