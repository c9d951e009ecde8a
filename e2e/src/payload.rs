//! A release payload in the form of OpenShift's, made of what can be had.
//!
//! etcd, the Kubernetes programs, the Cluster API managers, kubectl and haproxy are the real programs; the operators are
//! ours; all other images hold a `stand-in`, which serves the ports and probes of its component and nothing else. Each
//! image has a small real shell (busybox), because components run scripts.
//!
//! ```no_run
//! # async fn example(testbed: &e2e::node::NodeTestbed) -> anyhow::Result<()> {
//! let payload = e2e::payload::Payload::build(&testbed.progress).await?;
//! let pushed = payload.push(&testbed.registry).await?;
//! let release = pushed.release(&testbed.registry, "4.22.0").await?;
//! # Ok(())
//! # }
//! ```

mod base;
mod images;
mod kinds;
mod manifests;
mod stand_ins;

use std::collections::BTreeMap;

use anyhow::Result;

use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File};
use crate::node::NodeTestbed;
use crate::progress::Progress;
use crate::registry::{self, Registry};

pub(crate) use base::files as shell;
use images::Made;
pub use manifests::{BOOT_IMAGE, REGION};

/// The repository of release images.
pub const REPOSITORY: &str = "ocp/release";
/// The repository of images whose programs cannot be had.
const STAND_INS: &str = "payload/stand-in";
/// Where a release image has its manifests.
const MANIFESTS: &str = "/release-manifests";
/// The tag whose image is another one in each release.
const DIFFERS: &str = "cluster-version-operator";

/// The images of a payload, built.
#[derive(Debug)]
pub struct Payload {
    made: Vec<Made>,
    stand_in: Archive,
    kubernetes: String,
}

/// The images of a payload, in a registry.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// Component tags and the references of their images.
    pub components: BTreeMap<String, String>,
    kubernetes: String,
    stand_in: Archive,
}

/// A release, in a registry.
#[derive(Debug, Clone)]
pub struct Release {
    /// Its version.
    pub version: String,
    /// By name and tag, as users write it.
    pub image: String,
    /// By digest.
    pub digest: String,
}

/// Pushes the image that stands in for others, without a payload; gives its reference.
pub async fn stand_in_image(testbed: &NodeTestbed) -> Result<String> {
    let image = images::stand_in(&testbed.progress).await?;
    testbed.registry.push(STAND_INS, &image).await
}

/// Pushes a release of images that are nowhere: for tests in which no pod runs. Gives its name at the registry's address.
pub async fn without_images(registry: &Registry, version: &str) -> Result<String> {
    let digest = "0".repeat(64);
    let tags = stand_ins::tags().map(|(tag, _)| tag).chain(images::TAGS);
    let components = tags
        .map(|tag| {
            let image = format!("{}/payload/{tag}@sha256:{digest}", registry::NAME);
            (tag.to_owned(), image)
        })
        .collect();
    let kubernetes = Binary::KubeApiserver.version()?;
    let files = manifests_of(version, &components, kubernetes.trim_start_matches('v'));
    let archive = Archive::of(&Contents {
        entrypoint: "/bin/sh".to_owned(),
        command: &[],
        files: files.into(),
    })?;
    registry.push_as(REPOSITORY, version, &archive).await?;
    Ok(format!("{}/{REPOSITORY}:{version}", registry.address()))
}

// === impl Payload ===

impl Payload {
    /// Builds what is missing, and puts all images together.
    pub async fn build(progress: &Progress) -> Result<Self> {
        let binaries = Binaries::ensure(&images::NEEDED, progress).await?;
        Ok(Self {
            made: images::build(&binaries, progress).await?,
            stand_in: images::stand_in(progress).await?,
            kubernetes: Binary::KubeApiserver.version()?,
        })
    }

    /// Pushes all images. The release comes after them: [`Pushed::release`].
    pub async fn push(&self, registry: &Registry) -> Result<Pushed> {
        let mut components = BTreeMap::new();
        for Made { tag, archive } in &self.made {
            let reference = registry.push(&format!("payload/{tag}"), archive).await?;
            components.insert((*tag).to_owned(), reference);
        }
        for (tag, program) in stand_ins::tags() {
            let archive = self
                .stand_in
                .variant(program, &format!("STANDS_IN_FOR={tag}"));
            let reference = registry.push_as(STAND_INS, tag, &archive).await?;
            components.insert(tag.to_owned(), reference);
        }
        Ok(Pushed {
            components,
            kubernetes: self.kubernetes.trim_start_matches('v').to_owned(),
            stand_in: self.stand_in.clone(),
        })
    }
}

// === impl Pushed ===

impl Pushed {
    /// Pushes the release of a version, which differs from others in its version, in one image and in its boot images.
    pub async fn release(&self, registry: &Registry, version: &str) -> Result<Release> {
        let mut components = self.components.clone();
        let own = self.stand_in.variant(
            &format!("/usr/bin/{DIFFERS}"),
            &format!("VERSION={version}"),
        );
        let reference = registry
            .push_as(STAND_INS, &format!("{DIFFERS}-{version}"), &own)
            .await?;
        components.insert(DIFFERS.to_owned(), reference);
        let archive = release_image(version, &components, &self.kubernetes)?;
        let tag = format!("{version}-x86_64");
        Ok(Release {
            version: version.to_owned(),
            digest: registry.push_as(REPOSITORY, &tag, &archive).await?,
            image: format!("{}/{REPOSITORY}:{tag}", registry::NAME),
        })
    }
}

fn release_image(
    version: &str,
    components: &BTreeMap<String, String>,
    kubernetes: &str,
) -> Result<Archive> {
    let mut files = base::files()?;
    files.extend(manifests_of(version, components, kubernetes));
    Archive::of(&Contents {
        entrypoint: "/bin/sh".to_owned(),
        command: &[],
        files,
    })
}

/// What makes an image a release.
fn manifests_of(
    version: &str,
    components: &BTreeMap<String, String>,
    kubernetes: &str,
) -> [File; 3] {
    let references = manifests::image_references(version, components, kubernetes);
    let boot_images = manifests::boot_images(version);
    [
        File::text(
            format!("{MANIFESTS}/image-references"),
            references.to_string(),
        ),
        File::text(
            format!("{MANIFESTS}/0000_50_installer_coreos-bootimages.yaml"),
            // JSON is YAML.
            boot_images.to_string(),
        ),
        // Components copy what is there.
        File::text("/manifests/.keep", ""),
    ]
}
