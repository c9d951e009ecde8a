//! Which images machines boot from: the stream metadata that a release carries, in the form that Fedora CoreOS defined.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::node_pool::Arch;
use serde::Deserialize;

/// Boot images of one operating system stream, for each architecture and platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// The stream's name.
    pub stream: String,
    architectures: BTreeMap<String, Architecture>,
}

/// The streams of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streams {
    /// The default stream.
    pub default: Option<Stream>,
    /// Since 5.0, those that pools may choose from, by their names, such as `rhel-9`.
    pub named: BTreeMap<String, Stream>,
}

/// A disk to download.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Disk {
    /// Its URL.
    pub location: String,
    /// The SHA-256 of what is downloaded.
    pub sha256: String,
    /// The SHA-256 of the uncompressed content.
    pub uncompressed_sha256: Option<String>,
}

/// An image in the marketplace of Azure.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MarketplaceImage {
    /// Its publisher.
    pub publisher: String,
    /// Its offer.
    pub offer: String,
    /// Its SKU.
    pub sku: String,
    /// Its version.
    pub version: String,
}

/// A generation of virtual machines of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HyperVGeneration {
    /// The first, with BIOS.
    V1,
    /// The second, with UEFI.
    V2,
}

/// An image of IBM Power Virtual Server: an object in a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PowerVsObject {
    /// Its version.
    pub release: String,
    /// The object.
    pub object: String,
    /// The bucket.
    pub bucket: String,
}

/// An invalid file with boot images.
#[derive(Debug, thiserror::Error)]
pub enum InvalidStream {
    /// It is not a ConfigMap.
    #[error("the file with the boot images is not a ConfigMap")]
    ConfigMap(#[source] serde_saphyr::Error),
    /// A key does not contain stream metadata.
    #[error("the boot images under the key {key:?} are not stream metadata")]
    Stream {
        /// The key of the ConfigMap.
        key: &'static str,
        /// The parse error.
        source: serde_json::Error,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Architecture {
    artifacts: BTreeMap<String, Artifact>,
    images: Images,
    rhel_coreos_extensions: Extensions,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Artifact {
    release: String,
    formats: BTreeMap<String, Format>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Format {
    disk: Option<Disk>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Images {
    aws: Option<Regions<Ami>>,
    gcp: Option<Gcp>,
    kubevirt: Option<KubeVirt>,
    powervs: Option<Regions<PowerVsObject>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Regions<T> {
    regions: BTreeMap<String, T>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Ami {
    image: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Gcp {
    project: String,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct KubeVirt {
    digest_ref: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Extensions {
    azure_disk: Option<AzureDisk>,
    aws_winli: Option<Regions<Ami>>,
    marketplace: Marketplace,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct AzureDisk {
    url: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Marketplace {
    azure: Option<AzureMarketplace>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct AzureMarketplace {
    no_purchase_plan: Generations,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Generations {
    #[serde(rename = "hyperVGen1")]
    v1: Option<MarketplaceImage>,
    #[serde(rename = "hyperVGen2")]
    v2: Option<MarketplaceImage>,
}

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: Data,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Data {
    stream: Option<String>,
    streams: Option<String>,
}

// === impl Streams ===

impl Streams {
    /// Reads the ConfigMap that a release has them in, as YAML.
    pub fn parse(yaml: &str) -> Result<Self, InvalidStream> {
        let map: ConfigMap = serde_saphyr::from_str(yaml).map_err(InvalidStream::ConfigMap)?;
        let named = match &map.data.streams {
            Some(json) => read("streams", json)?,
            None => BTreeMap::new(),
        };
        let default = map.data.stream.as_deref();
        Ok(Self {
            default: default.map(|json| read("stream", json)).transpose()?,
            named,
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(key: &'static str, json: &str) -> Result<T, InvalidStream> {
    serde_json::from_str(json).map_err(|source| InvalidStream::Stream { key, source })
}

// === impl Stream ===

impl Stream {
    /// The image in a region of AWS.
    pub fn ami(&self, arch: Arch, region: &str) -> Option<&str> {
        in_region(self.images(arch)?.aws.as_ref(), region)
    }

    /// The image in a region of AWS that includes a Windows license.
    pub fn windows_ami(&self, arch: Arch, region: &str) -> Option<&str> {
        in_region(self.extensions(arch)?.aws_winli.as_ref(), region)
    }

    /// The image in Azure's marketplace.
    pub fn azure_marketplace(
        &self,
        arch: Arch,
        generation: HyperVGeneration,
    ) -> Option<&MarketplaceImage> {
        let plan = &self
            .extensions(arch)?
            .marketplace
            .azure
            .as_ref()?
            .no_purchase_plan;
        match generation {
            HyperVGeneration::V1 => plan.v1.as_ref(),
            HyperVGeneration::V2 => plan.v2.as_ref(),
        }
    }

    /// Where Azure's disk can be copied from.
    pub fn azure_disk(&self, arch: Arch) -> Option<&str> {
        let disk = self.extensions(arch)?.azure_disk.as_ref()?;
        Some(&disk.url)
    }

    /// The image in Google's cloud, as it is named there.
    pub fn gcp(&self, arch: Arch) -> Option<String> {
        let Gcp { project, name } = self.images(arch)?.gcp.as_ref()?;
        Some(format!("projects/{project}/global/images/{name}"))
    }

    /// The container disk for KubeVirt, by digest.
    pub fn kubevirt(&self, arch: Arch) -> Option<&str> {
        let image = self.images(arch)?.kubevirt.as_ref()?;
        Some(&image.digest_ref)
    }

    /// The object in a region of IBM Power Virtual Server.
    pub fn powervs(&self, arch: Arch, region: &str) -> Option<&PowerVsObject> {
        self.images(arch)?.powervs.as_ref()?.regions.get(region)
    }

    /// The compressed disk for clouds of `OpenStack`.
    pub fn openstack(&self, arch: Arch) -> Option<&Disk> {
        self.disk(arch, "openstack", "qcow2.gz")
    }

    /// The version of the disks for a platform.
    pub fn artifact_release(&self, arch: Arch, platform: &str) -> Option<&str> {
        let artifact = self.architecture(arch)?.artifacts.get(platform)?;
        Some(artifact.release.as_str()).filter(|release| !release.is_empty())
    }

    /// A disk for a platform in a format, such as `metal` and `iso`.
    pub fn disk(&self, arch: Arch, platform: &str, format: &str) -> Option<&Disk> {
        let artifact = self.architecture(arch)?.artifacts.get(platform)?;
        artifact.formats.get(format)?.disk.as_ref()
    }

    fn images(&self, arch: Arch) -> Option<&Images> {
        Some(&self.architecture(arch)?.images)
    }

    fn extensions(&self, arch: Arch) -> Option<&Extensions> {
        Some(&self.architecture(arch)?.rhel_coreos_extensions)
    }

    fn architecture(&self, arch: Arch) -> Option<&Architecture> {
        self.architectures.get(match arch {
            Arch::Amd64 => "x86_64",
            Arch::Arm64 => "aarch64",
            Arch::Ppc64le => "ppc64le",
            Arch::S390x => "s390x",
        })
    }
}

fn in_region<'a>(amis: Option<&'a Regions<Ami>>, region: &str) -> Option<&'a str> {
    Some(&amis?.regions.get(region)?.image)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config_map() -> String {
        let disk = |name: &str| json!({ "disk": { "location": format!("https://images.example.com/{name}"), "sha256": "aa", "uncompressed-sha256": "bb" } });
        let stream = json!({
            "stream": "rhcos-4.22",
            "metadata": { "last-modified": "2026-01-01T00:00:00Z" },
            "architectures": {
                "x86_64": {
                    "artifacts": {
                        "openstack": { "release": "422.1", "formats": { "qcow2.gz": disk("openstack.qcow2.gz") } },
                        "metal": { "release": "422.1", "formats": { "iso": disk("live.iso"), "pxe": { "kernel": {} } } },
                    },
                    "images": {
                        "aws": { "regions": { "us-east-1": { "release": "422.1", "image": "ami-1" } } },
                        "gcp": { "release": "422.1", "project": "some-project", "name": "some-image" },
                        "kubevirt": { "release": "422.1", "image": "images.example.com/disk:1", "digest-ref": "images.example.com/disk@sha256:00" },
                    },
                    "rhel-coreos-extensions": {
                        "azure-disk": { "release": "422.1", "url": "https://images.example.com/azure.vhd" },
                        "aws-winli": { "regions": { "us-east-1": { "release": "422.1", "image": "ami-w" } } },
                        "marketplace": { "azure": { "no-purchase-plan": {
                            "hyperVGen2": { "publisher": "p", "offer": "o", "sku": "s", "version": "v" } } } },
                    },
                },
                "ppc64le": { "images": { "powervs": { "regions": { "mon": { "release": "422.1", "object": "o", "bucket": "b", "url": "u" } } } } },
            },
        });
        let streams =
            json!({ "rhel-9": stream, "rhel-10": { "stream": "rhel-10", "architectures": {} } });
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coreos-bootimages\ndata:\n  releaseVersion: 4.22.0\n  stream: |\n    {stream}\n  streams: |\n    {streams}\n"
        )
    }

    #[test]
    fn each_platform_has_its_image() {
        let streams = Streams::parse(&config_map()).unwrap();
        let stream = streams.default.unwrap();
        let amd = Arch::Amd64;
        assert_eq!(stream.stream, "rhcos-4.22");
        assert_eq!(stream.ami(amd, "us-east-1"), Some("ami-1"));
        assert_eq!(stream.windows_ami(amd, "us-east-1"), Some("ami-w"));
        assert_eq!(
            stream.gcp(amd).unwrap(),
            "projects/some-project/global/images/some-image"
        );
        assert_eq!(
            stream.kubevirt(amd),
            Some("images.example.com/disk@sha256:00")
        );
        assert_eq!(
            stream.azure_disk(amd),
            Some("https://images.example.com/azure.vhd")
        );
        let image = stream.azure_marketplace(amd, HyperVGeneration::V2).unwrap();
        assert_eq!(image.sku, "s");
        assert_eq!(stream.artifact_release(amd, "openstack"), Some("422.1"));
        assert_eq!(stream.artifact_release(amd, "qemu"), None);
        let disk = stream.openstack(amd).unwrap();
        assert_eq!(disk.uncompressed_sha256.as_deref(), Some("bb"));
        assert!(stream.disk(amd, "metal", "iso").is_some());
        assert_eq!(stream.powervs(Arch::Ppc64le, "mon").unwrap().bucket, "b");
        assert_eq!(streams.named["rhel-9"], stream);
    }

    #[test]
    fn absent_platforms_have_no_image() {
        let stream = Streams::parse(&config_map()).unwrap().default.unwrap();
        assert_eq!(stream.ami(Arch::Amd64, "mars-1"), None);
        assert_eq!(stream.ami(Arch::Arm64, "us-east-1"), None);
        assert_eq!(
            stream.azure_marketplace(Arch::Amd64, HyperVGeneration::V1),
            None
        );
        assert!(stream.disk(Arch::Amd64, "metal", "pxe").is_none());
        assert_eq!(
            Streams::parse("kind: ConfigMap").unwrap(),
            Streams::default()
        );
    }

    #[test]
    fn invalid_metadata_is_reported_with_its_key() {
        for (yaml, expected) in [
            ("data: [", "not a ConfigMap"),
            ("data:\n  stream: '{'", "\"stream\""),
            ("data:\n  streams: '[1]'", "\"streams\""),
        ] {
            let error = Streams::parse(yaml).unwrap_err().to_string();
            assert!(error.contains(expected), "{yaml}: {error}");
        }
    }
}
