//! Images and versions of a release, as components use them.

use std::collections::BTreeMap;

use payload::Reference;

use super::error::{Error, Result};

/// Image names that always resolve to this operator's image.
const OWN: [&str; 6] = [
    "controlplane-operator",
    "controlplane-pki-operator",
    "hosted-cluster-config-operator",
    "token-minter",
    "availability-prober",
    "socks5-proxy",
];
/// Image name that defaults to the release image itself.
const RELEASE: &str = "cluster-version-operator";

/// Images and versions of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Release {
    /// Pull spec of the release image.
    pub pull_spec: String,
    /// Digest of the release image. Empty if it was not read from a registry.
    pub digest: String,
    /// Its version, for example `4.20.0`.
    pub version: String,
    /// Versions of its components, for example `kubernetes`.
    pub component_versions: BTreeMap<String, String>,
    /// Pull spec by name.
    pub images: BTreeMap<String, String>,
    /// Index images of operator catalogs by name, or why there is none; empty if they were not looked up.
    pub catalogs: BTreeMap<String, std::result::Result<CatalogImage, String>>,
}

/// The index image of an operator catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogImage {
    /// Its pull spec with the tag of a version.
    pub tagged: String,
    /// Its pull spec with the digest, as far as it was looked up.
    pub pinned: String,
}

// === impl Release ===

impl From<&payload::Release> for Release {
    fn from(release: &payload::Release) -> Self {
        Self {
            pull_spec: release.image.clone(),
            digest: release.digest.clone(),
            version: release.version.to_string(),
            component_versions: release.component_versions.clone(),
            images: release.components.clone(),
            catalogs: BTreeMap::new(),
        }
    }
}

impl Release {
    /// Replaces images with this operator's image and with overrides.
    pub fn with_overrides(mut self, own_image: &str, overrides: &BTreeMap<String, String>) -> Self {
        for name in OWN {
            self.images.insert(name.to_owned(), own_image.to_owned());
        }
        let release = self.pull_spec.clone();
        self.images.entry(RELEASE.to_owned()).or_insert(release);
        let overrides = overrides
            .iter()
            .map(|(name, image)| (name.clone(), image.clone()));
        self.images.extend(overrides);
        self
    }

    /// Returns the pull spec of an image name. A pull spec is returned unchanged.
    pub fn image(&self, name: &str) -> Result<String> {
        if let Some(image) = self.images.get(name) {
            return Ok(image.clone());
        }
        if name.contains([':', '/', '@']) {
            return Ok(name.to_owned());
        }
        Err(Error::MissingImage {
            release: self.version.clone(),
            name: name.to_owned(),
        })
    }

    /// Pull spec of the release image with its digest, as far as it is known: a tag may move.
    pub fn pinned(&self) -> String {
        match self.pull_spec.parse::<Reference>() {
            Ok(reference) if !self.digest.is_empty() => {
                format!("{}@{}", reference.repository(), self.digest)
            }
            _ => self.pull_spec.clone(),
        }
    }

    /// The version of Kubernetes, or 0.0.0 where the release does not state it.
    pub fn kubernetes(&self) -> &str {
        self.component_versions
            .get("kubernetes")
            .map_or("0.0.0", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> Release {
        let release = Release {
            pull_spec: "registry.example.com/release:1".to_owned(),
            images: [
                ("etcd".to_owned(), "registry.example.com/etcd".to_owned()),
                ("token-minter".to_owned(), "other".to_owned()),
            ]
            .into(),
            ..Release::default()
        };
        let overrides = BTreeMap::from([("etcd".to_owned(), "images.example.com/e".to_owned())]);
        release.with_overrides("images.example.com/cpo", &overrides)
    }

    #[test]
    fn image_names_resolve_to_pull_specs() {
        for (name, image) in [
            ("etcd", "images.example.com/e"),
            ("token-minter", "images.example.com/cpo"),
            ("controlplane-pki-operator", "images.example.com/cpo"),
            ("cluster-version-operator", "registry.example.com/release:1"),
            (
                "images.example.com/x@sha256:0",
                "images.example.com/x@sha256:0",
            ),
        ] {
            assert_eq!(release().image(name).unwrap(), image, "{name}");
        }
    }

    #[test]
    fn release_images_are_pinned_if_the_digest_is_known() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let pinned = format!("registry.example.com/release@{digest}");
        for (pull_spec, digest, expected) in [
            (
                "registry.example.com/release:1",
                digest.as_str(),
                pinned.as_str(),
            ),
            (
                "registry.example.com/release:1",
                "",
                "registry.example.com/release:1",
            ),
            (&pinned, &digest, &pinned),
        ] {
            let release = Release {
                pull_spec: pull_spec.to_owned(),
                digest: digest.to_owned(),
                ..Release::default()
            };
            assert_eq!(release.pinned(), expected, "{pull_spec} {digest}");
        }
    }

    #[test]
    fn missing_images_are_named_in_errors() {
        let error = release().image("cli").unwrap_err();
        assert!(error.to_string().contains("no image cli"), "{error}");
    }
}
