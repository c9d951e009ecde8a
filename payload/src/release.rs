//! What a release says about itself.

use std::collections::BTreeMap;

use api::hypershift::v1beta1::hosted_cluster::status::PayloadArch;

use crate::boot_images::Stream;
use crate::error::Error;
use crate::mirrors::Overrides;
use crate::version::Version;

/// Components that are not tags of a release: parts of the control-plane-operator's image.
pub const UTILITIES: [&str; 5] = [
    "controlplane-operator",
    "availability-prober",
    "token-minter",
    "hosted-cluster-config-operator",
    "socks5-proxy",
];

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Its image, as it was asked for.
    pub image: String,
    /// The digest of its image: what was read.
    pub digest: String,
    /// The mirror that it was read from, if it was one.
    pub mirror: Option<String>,
    /// Its version.
    pub version: Version,
    /// The images of its components by tag, with registries replaced as they were asked to be.
    pub components: BTreeMap<String, String>,
    /// The images of its components as the release has them.
    pub canonical: BTreeMap<String, String>,
    /// Versions of what is in it, such as `kubernetes`.
    pub component_versions: BTreeMap<String, String>,
    /// The architectures it is for.
    pub architectures: PayloadArch,
    /// The boot images of the usual operating system stream.
    pub boot_images: Option<Stream>,
    /// Boot images by stream, such as `rhel-9`, where the release has several.
    pub boot_image_streams: BTreeMap<String, Stream>,
    /// Labels of the release's own image.
    pub labels: BTreeMap<String, String>,
}

/// A component that a release has no image for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the release {version} has no image for {}", names.join(", "))]
pub struct MissingImage {
    /// The release's version.
    pub version: Version,
    /// The components.
    pub names: Vec<String>,
}

impl Release {
    /// Reads the file `image-references` of the release `image`.
    pub fn from_image_references(
        _image: &str,
        _json: &[u8],
        _overrides: &Overrides,
    ) -> Result<Self, Error> {
        todo!()
    }

    /// The image of a component: by its tag, or by one of [`UTILITIES`].
    pub fn component(&self, _name: &str) -> Result<&str, MissingImage> {
        todo!()
    }

    /// Which of these components it has no image for, all at once.
    pub fn require(&self, _names: &[&str]) -> Result<(), MissingImage> {
        todo!()
    }

    /// The same with other images for some components, by their names.
    pub fn with_images(self, _images: &BTreeMap<String, String>) -> Self {
        todo!()
    }

    /// The same with the image of the control-plane-operator for all [`UTILITIES`].
    pub fn with_utilities(self, _image: &str) -> Self {
        todo!()
    }

    /// The same with the images as the release has them: what is pulled by nodes, which know of no overrides.
    pub fn for_user(&self) -> Self {
        todo!()
    }
}
