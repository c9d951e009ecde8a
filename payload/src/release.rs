//! A release: its version, components and boot images.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;

use crate::boot_images::{Stream, Streams};
use crate::error::{Error, Reason};
use crate::image_references::ImageReferences;
use crate::mirrors::Overrides;
use crate::reference::Reference;
use crate::version::Version;

/// Components that are not tags of a release: parts of the control-plane-operator's image.
pub const UTILITIES: [&str; 6] = [
    "controlplane-operator",
    "controlplane-pki-operator",
    "availability-prober",
    "token-minter",
    "hosted-cluster-config-operator",
    "socks5-proxy",
];
/// The tag of the control-plane-operator's image.
const CONTROL_PLANE_OPERATOR: &str = "hypershift";
/// The component that is the release's own image, where no tag says otherwise.
const VERSION_OPERATOR: &str = "cluster-version-operator";

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its image, as it was requested.
    pub image: String,
    /// Its image with overrides applied.
    pub overridden_image: String,
    /// The digest of its image: what was read. Empty if it was read from a file.
    pub digest: String,
    /// The mirror that it was read from, if it was one.
    pub mirror: Option<String>,
    /// Its version.
    pub version: Version,
    /// The images of its components by tag, with overrides applied.
    pub components: BTreeMap<String, String>,
    /// The images of its components as the release has them.
    pub canonical: BTreeMap<String, String>,
    /// Versions of what is in it, such as `kubernetes`.
    pub component_versions: BTreeMap<String, String>,
    /// The architectures it is for.
    pub architectures: PayloadArch,
    /// The boot images of the default operating system stream.
    pub boot_images: Option<Stream>,
    /// Boot images by stream, such as `rhel-9`, where the release has several.
    pub boot_image_streams: BTreeMap<String, Stream>,
    /// Labels of the release's own image.
    pub labels: BTreeMap<String, String>,
}

/// Components that a release has no image for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("release {version} has no image for {}", names.join(", "))]
pub struct MissingImage {
    /// The release's version.
    pub version: Version,
    /// The components.
    pub names: Vec<String>,
}

/// A release has no boot images of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("release {version} has no boot images of stream {name}, but of {}", known.join(", "))]
pub struct MissingStream {
    /// The release's version.
    pub version: Version,
    /// The stream.
    pub name: String,
    /// The streams that it has.
    pub known: Vec<String>,
}

// === impl Release ===

impl Release {
    /// Reads the file `image-references` of the release `image`: one that is for 64-bit x86, without boot images.
    pub fn from_image_references(
        image: &str,
        json: &[u8],
        overrides: &Overrides,
    ) -> Result<Self, Error> {
        let references = ImageReferences::parse(json).map_err(|error| {
            Error::new(image, Reason::NotAPayload, error.to_string()).caused_by(error)
        })?;
        Ok(Self::new(image, &references, overrides))
    }

    /// The release that these references make.
    pub(crate) fn new(image: &str, references: &ImageReferences, overrides: &Overrides) -> Self {
        let overridden = |(name, image): (&String, &String)| (name.clone(), overrides.apply(image));
        Self {
            image: image.to_owned(),
            overridden_image: overrides.apply(image),
            digest: digest_in(image),
            mirror: None,
            version: references.version.clone(),
            components: references.images.iter().map(overridden).collect(),
            canonical: references.images.clone(),
            component_versions: references.versions.clone(),
            architectures: PayloadArch::Amd64,
            boot_images: None,
            boot_image_streams: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// The same with boot images.
    pub fn with_boot_images(self, streams: Streams) -> Self {
        Self {
            boot_images: streams.default,
            boot_image_streams: streams.named,
            ..self
        }
    }

    /// The same with the boot images of a stream. A release without streams has the same ones for each.
    pub fn with_stream(self: &Arc<Self>, name: &str) -> Result<Arc<Self>, MissingStream> {
        if self.boot_image_streams.is_empty() {
            return Ok(Arc::clone(self));
        }
        let Some(stream) = self.boot_image_streams.get(name) else {
            return Err(MissingStream {
                version: self.version.clone(),
                name: name.to_owned(),
                known: self.boot_image_streams.keys().cloned().collect(),
            });
        };
        if self.boot_images.as_ref() == Some(stream) {
            return Ok(Arc::clone(self));
        }
        Ok(Arc::new(Self {
            boot_images: Some(stream.clone()),
            ..Self::clone(self)
        }))
    }

    /// Replaces the images of some components, as an annotation or a flag says. Overrides do not apply to them.
    pub fn with_images(mut self, images: &BTreeMap<String, String>) -> Self {
        for map in [&mut self.components, &mut self.canonical] {
            map.extend(images.clone());
        }
        self
    }

    /// The same with one image for all [`UTILITIES`]: that of the control-plane-operator that runs.
    pub fn with_utilities(self, image: &str) -> Self {
        let of = |name: &str| (name.to_owned(), image.to_owned());
        self.with_images(&UTILITIES.into_iter().map(of).collect())
    }

    /// The same without overrides: the images that nodes pull.
    pub fn for_user(self) -> Self {
        Self {
            components: self.canonical.clone(),
            overridden_image: self.image.clone(),
            ..self
        }
    }

    /// The image of a component: by its tag, or by one of [`UTILITIES`].
    pub fn component(&self, name: &str) -> Result<&str, MissingImage> {
        self.find(name).ok_or_else(|| self.missing(&[name]))
    }

    /// Fails if a component has no image; names all of them.
    pub fn require(&self, names: &[&str]) -> Result<(), MissingImage> {
        let absent = names.iter().filter(|name| self.find(name).is_none());
        let absent: Vec<&str> = absent.copied().collect();
        if absent.is_empty() {
            return Ok(());
        }
        Err(self.missing(&absent))
    }

    fn find(&self, name: &str) -> Option<&str> {
        let found = self.components.get(name).or_else(|| {
            let utility = UTILITIES.contains(&name);
            self.components
                .get(CONTROL_PLANE_OPERATOR)
                .filter(|_| utility)
        });
        let own = || (name == VERSION_OPERATOR).then_some(&self.overridden_image);
        found.or_else(own).map(String::as_str)
    }

    fn missing(&self, names: &[&str]) -> MissingImage {
        MissingImage {
            version: self.version.clone(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
        }
    }
}

fn digest_in(image: &str) -> String {
    let reference = image.parse::<Reference>().ok();
    let digest = reference.and_then(|reference| reference.digest().cloned());
    digest.map_or_else(String::new, |digest| digest.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const IMAGE: &str = "registry.example.com/release:4.22.0";

    fn release(tags: &[(&str, &str)]) -> Release {
        let tags: Vec<_> = tags
            .iter()
            .map(|(name, image)| json!({ "name": name, "from": { "kind": "DockerImage", "name": image } }))
            .collect();
        let json = json!({
            "kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
            "metadata": { "name": "4.22.0" }, "spec": { "tags": tags },
        });
        let pairs = [("registry.example.com", "mirror.example.com/copy")];
        let overrides = Overrides::new(pairs.map(|(a, b)| (a.to_owned(), b.to_owned())));
        Release::from_image_references(IMAGE, json.to_string().as_bytes(), &overrides).unwrap()
    }

    #[test]
    fn components_are_overridden_and_originals_are_kept() {
        let release = release(&[("etcd", "registry.example.com/etcd@sha256:1")]);
        let component = release.component("etcd").unwrap();
        assert_eq!(component, "mirror.example.com/copy/etcd@sha256:1");
        let user = release.for_user();
        let component = user.component("etcd").unwrap();
        assert_eq!(component, "registry.example.com/etcd@sha256:1");
        assert_eq!(user.component("cluster-version-operator").unwrap(), IMAGE);
    }

    #[test]
    fn boot_images_of_a_stream_are_selected_by_name() {
        let stream = |name: &str| json!({ "stream": name });
        let streams = json!({ "rhel-9": stream("nine"), "rhel-10": stream("ten") }).to_string();
        let single = json!({ "data": { "stream": stream("single").to_string() } });
        let several =
            json!({ "data": { "stream": stream("single").to_string(), "streams": streams } });
        for (data, name, expected) in [
            (&single, "rhel-9", Ok("single")),
            (&single, "rhel-10", Ok("single")),
            (&several, "rhel-9", Ok("nine")),
            (&several, "rhel-10", Ok("ten")),
            (
                &several,
                "rhel-11",
                Err("release 4.22.0 has no boot images of stream rhel-11, but of rhel-10, rhel-9"),
            ),
        ] {
            let streams = Streams::parse(&data.to_string()).unwrap();
            let release = Arc::new(
                release(&[("etcd", "registry.example.com/etcd@sha256:1")])
                    .with_boot_images(streams),
            );
            let found = release.with_stream(name);
            let found = found.map(|it| it.boot_images.as_ref().unwrap().stream.clone());
            let found = found.map_err(|error| error.to_string());
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn utilities_are_parts_of_the_operators_image() {
        let release = release(&[("hypershift", "registry.example.com/hypershift@sha256:1")]);
        for name in UTILITIES {
            let image = release.component(name).unwrap();
            assert_eq!(
                image, "mirror.example.com/copy/hypershift@sha256:1",
                "{name}"
            );
        }
        let running = release.with_utilities("images.example.com/ours:1");
        for name in UTILITIES {
            assert_eq!(
                running.component(name).unwrap(),
                "images.example.com/ours:1"
            );
        }
        let tag = running.component("hypershift").unwrap();
        assert_eq!(tag, "mirror.example.com/copy/hypershift@sha256:1");
    }

    #[test]
    fn the_version_operator_is_the_releases_own_image_by_default() {
        let plain = release(&[("etcd", "e")]);
        let own = plain.component("cluster-version-operator").unwrap();
        assert_eq!(own, "mirror.example.com/copy/release:4.22.0");
        let named = release(&[("cluster-version-operator", "images.example.com/cvo:1")]);
        let own = named.component("cluster-version-operator").unwrap();
        assert_eq!(own, "images.example.com/cvo:1");
    }

    #[test]
    fn all_missing_images_are_named_at_once() {
        let release = release(&[("etcd", "e")]);
        let error = release
            .require(&["etcd", "hyperkube", "token-minter"])
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "release 4.22.0 has no image for hyperkube, token-minter"
        );
        let images = ["hyperkube", "hypershift"].map(|name| (name.to_owned(), name.to_owned()));
        let release = release.with_images(&images.into());
        release
            .require(&["etcd", "hyperkube", "token-minter"])
            .unwrap();
    }
}
