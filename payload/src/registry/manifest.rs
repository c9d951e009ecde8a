//! Manifests, lists of manifests, and image configurations.

use std::collections::{BTreeMap, BTreeSet};

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;
use api::hypershift::v1beta1::node_pool::Arch;
use serde::Deserialize;

use crate::reference::Digest;

/// The media types that are supported.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// One image, or a list of images for several architectures.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Manifest {
    /// A list.
    List {
        /// What is in it.
        manifests: Vec<Listed>,
    },
    /// One image.
    Image(ImageManifest),
}

/// What one image is made of.
#[derive(Debug, Deserialize)]
pub(crate) struct ImageManifest {
    pub(super) config: Descriptor,
    /// From the bottom up.
    pub(super) layers: Vec<Descriptor>,
}

/// A blob or manifest, by digest.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Descriptor {
    #[serde(deserialize_with = "digest")]
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// An image in a list.
#[derive(Debug, Deserialize)]
pub(super) struct Listed {
    #[serde(flatten)]
    pub(super) descriptor: Descriptor,
    #[serde(default)]
    platform: Platform,
}

/// An image's configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ImageConfig {
    architecture: String,
    config: Option<Settings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

// === impl Manifest ===

/// The image of an architecture in a list; the first one if there is none: what is read is the same in all of them.
pub(super) fn choose(list: &[Listed], arch: Arch) -> Option<&Descriptor> {
    let mut images = list.iter().filter(|listed| listed.arch().is_some());
    let of_arch = images.clone().find(|listed| listed.arch() == Some(arch));
    of_arch
        .or_else(|| images.next())
        .map(|listed| &listed.descriptor)
}

/// The architectures that a list is for.
pub(super) fn architectures(list: &[Listed]) -> Option<PayloadArch> {
    let names = list.iter().filter_map(Listed::arch).map(arch_name);
    let names: BTreeSet<_> = names.collect();
    let mut one = names.iter();
    match (one.next(), one.next()) {
        (Some(name), None) => arch_of(name).map(payload_arch),
        (Some(_), Some(_)) => Some(PayloadArch::Multi),
        (None, _) => None,
    }
}

// === impl Listed ===

impl Listed {
    fn arch(&self) -> Option<Arch> {
        arch_of(&self.platform.architecture).filter(|_| self.platform.os == "linux")
    }
}

// === impl ImageConfig ===

impl ImageConfig {
    /// The architecture that the image is for.
    pub(super) fn architectures(&self) -> Option<PayloadArch> {
        arch_of(&self.architecture).map(payload_arch)
    }

    /// Its labels.
    pub(super) fn labels(self) -> BTreeMap<String, String> {
        let labels = self.config.and_then(|settings| settings.labels);
        labels.unwrap_or_default()
    }
}

fn arch_of(name: &str) -> Option<Arch> {
    let all = [Arch::Amd64, Arch::Arm64, Arch::Ppc64le, Arch::S390x];
    all.into_iter().find(|arch| arch_name(*arch) == name)
}

fn arch_name(arch: Arch) -> &'static str {
    match arch {
        Arch::Amd64 => "amd64",
        Arch::Arm64 => "arm64",
        Arch::Ppc64le => "ppc64le",
        Arch::S390x => "s390x",
    }
}

fn payload_arch(arch: Arch) -> PayloadArch {
    match arch {
        Arch::Amd64 => PayloadArch::Amd64,
        Arch::Arm64 => PayloadArch::Arm64,
        Arch::Ppc64le => PayloadArch::Ppc64le,
        Arch::S390x => PayloadArch::S390x,
    }
}

fn digest<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(source)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn listed(os: &str, architecture: &str, digit: &str) -> Value {
        json!({ "digest": format!("sha256:{}", digit.repeat(64)), "size": 7,
            "platform": { "os": os, "architecture": architecture } })
    }

    fn list(entries: &[Value]) -> Vec<Listed> {
        let json = json!({ "schemaVersion": 2, "manifests": entries });
        match serde_json::from_value(json).unwrap() {
            Manifest::List { manifests } => manifests,
            Manifest::Image(_) => panic!("taken for an image"),
        }
    }

    #[test]
    fn the_architectures_own_image_is_chosen_or_any() {
        let list = list(&[
            listed("unknown", "unknown", "0"),
            listed("windows", "amd64", "1"),
            listed("linux", "arm64", "2"),
            listed("linux", "amd64", "3"),
        ]);
        let chosen = |arch| choose(&list, arch).unwrap().digest.hex()[..1].to_owned();
        assert_eq!(chosen(Arch::Amd64), "3");
        assert_eq!(chosen(Arch::Arm64), "2");
        assert_eq!(chosen(Arch::S390x), "2");
    }

    #[test]
    fn several_architectures_are_multi() {
        let (amd, arm) = (listed("linux", "amd64", "1"), listed("linux", "arm64", "2"));
        let attestation = listed("unknown", "unknown", "3");
        for (entries, expected) in [
            (vec![amd.clone(), arm.clone()], Some(PayloadArch::Multi)),
            (vec![arm, attestation.clone()], Some(PayloadArch::Arm64)),
            (vec![amd.clone(), amd], Some(PayloadArch::Amd64)),
            (vec![attestation], None),
        ] {
            assert_eq!(architectures(&list(&entries)), expected, "{entries:?}");
        }
    }

    #[test]
    fn a_configuration_may_have_no_labels() {
        for (json, labels) in [
            (json!({ "architecture": "s390x" }), 0),
            (json!({ "config": { "Labels": null } }), 0),
            (json!({ "config": { "Labels": { "a": "b" } } }), 1),
        ] {
            let config: ImageConfig = serde_json::from_value(json).unwrap();
            assert_eq!(config.labels().len(), labels);
        }
    }

    #[test]
    fn digests_of_other_kinds_are_refused() {
        let json = json!({ "config": { "digest": "md5:0", "size": 1 }, "layers": [] });
        assert!(serde_json::from_value::<Manifest>(json).is_err());
    }
}
