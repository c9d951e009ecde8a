//! A release payload in the form of OpenShift's, made of what can be had.
//!
//! etcd, the Kubernetes programs, konnectivity, OLM, the Cluster API managers, kubectl, haproxy and OpenShift's
//! `render` are the real programs; the operators are ours; the aggregated API servers are an `api-stand-in`, which
//! serves their groups from memory; all other images hold a `stand-in`, which serves the ports and probes of its
//! component and, for an operator, creates the Deployments that the control plane waits for. The daemon that upgrades
//! nodes where they are is a script that keeps to the protocol of the real one. The programs that make the
//! configuration of nodes are stand-ins with the command lines of the real ones; a payload has them, and the AWS cloud
//! controller manager and Karpenter, which are real programs, only where a test needs them ([`OptionalPrograms`]). Each
//! image has a small real shell (busybox), because components run scripts.
//!
//! ```no_run
//! # async fn example(testbed: &testbed::node::NodeTestbed) -> anyhow::Result<()> {
//! let payload = testbed::payload::Payload::build(&testbed.progress).await?;
//! let pushed = payload.push(&testbed.registry).await?;
//! let release = pushed.release(&testbed.registry, "4.22.0").await?;
//! # Ok(())
//! # }
//! ```

mod base;
pub mod catalog;
mod guest;
mod images;
mod manifests;
mod olm;
mod stand_ins;
mod templates;

use std::collections::BTreeMap;

use anyhow::Result;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::binaries::{Binaries, Binary};
use crate::images::{Archive, Contents, File};
use crate::node::NodeTestbed;
use crate::progress::Progress;
use crate::registry::{self, Registry};

pub(crate) use base::files as shell;
use images::Made;
pub use images::OptionalPrograms;
pub use manifests::{BOOT_IMAGE, GOOGLE_CLOUD_IMAGE, OPENSTACK_DISK, POWER_VS_IMAGE, REGION};

/// The repository of release images.
pub const REPOSITORY: &str = "ocp/release";
/// The tag of the control-plane-operator.
const OPERATOR: &str = "hypershift";
/// The repository of images whose programs cannot be had.
const STAND_INS: &str = "payload/stand-in";
/// Where a release image has its manifests.
const MANIFESTS: &str = "/release-manifests";
/// The variable by which an image is another one in each release.
const RELEASE: &str = "RELEASE_VERSION";
/// How many images are pushed at once.
const AT_ONCE: usize = 8;

/// The images of a payload, built.
#[derive(Debug)]
pub struct Payload {
    made: Vec<Made>,
    stand_in: Archive,
    kubernetes: String,
    olm: Vec<File>,
}

/// The images of a payload whose programs are real, in a registry.
#[derive(Debug, Clone)]
pub struct Pushed {
    /// Component tags and the references of their images.
    pub components: BTreeMap<String, String>,
    kubernetes: String,
    images: Vec<Image>,
    olm: Vec<File>,
}

/// An image of which each release has its own.
#[derive(Debug, Clone)]
struct Image {
    tag: String,
    repository: String,
    archive: Archive,
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

/// Pushes the stand-in image, without a payload; returns its reference.
pub async fn stand_in_image(testbed: &NodeTestbed) -> Result<String> {
    let image = images::stand_in(&testbed.progress).await?;
    testbed.registry.push(STAND_INS, &image).await
}

/// Pushes a release of images that are nowhere, but for its control-plane-operator, which has labels and nothing else:
/// for tests in which no pod runs. Gives its name at the registry's address.
pub async fn without_images(
    registry: &Registry,
    version: &str,
    labels: &BTreeMap<String, String>,
) -> Result<String> {
    let archive = archive_without_images(registry, version, labels).await?;
    push_release(registry, version, &archive).await
}

/// The same without the images that machines boot from.
pub async fn without_boot_images(
    registry: &Registry,
    version: &str,
    labels: &BTreeMap<String, String>,
) -> Result<String> {
    let files = files_without_images(registry, version, labels).await?;
    push_release(registry, version, &release_image(files)?).await
}

/// A release of images that are nowhere, for nodes of another architecture than `amd64`.
pub async fn without_images_for(
    registry: &Registry,
    version: &str,
    architecture: &str,
    labels: &BTreeMap<String, String>,
) -> Result<String> {
    let archive = archive_without_images(registry, version, labels).await?;
    let tag = format!("{version}-{architecture}");
    push_release(registry, &tag, &archive.for_architecture(architecture)).await
}

/// Gives its name at the registry's address.
async fn push_release(registry: &Registry, tag: &str, archive: &Archive) -> Result<String> {
    registry.push_as(REPOSITORY, tag, archive).await?;
    Ok(format!("{}/{REPOSITORY}:{tag}", registry.address()))
}

/// The image of such a release. Pushes the image of its control-plane-operator.
async fn archive_without_images(
    registry: &Registry,
    version: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Archive> {
    let mut files = files_without_images(registry, version, labels).await?;
    files.push(boot_images(version));
    release_image(files)
}

/// What is in it but for the boot images.
async fn files_without_images(
    registry: &Registry,
    version: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Vec<File>> {
    let digest = "0".repeat(64);
    let tags = stand_ins::tags().map(|(tag, _)| tag).chain(images::TAGS);
    let mut components: BTreeMap<_, _> = tags
        .map(|tag| {
            let image = format!("{}/payload/{tag}@sha256:{digest}", registry::NAME);
            (tag.to_owned(), image)
        })
        .collect();
    let operator = operator_without_program(registry, version, labels).await?;
    components.insert(OPERATOR.to_owned(), operator);
    let kubernetes = Binary::KubeApiserver.version()?;
    let kubernetes = kubernetes.trim_start_matches('v');
    Ok(references_of(version, &components, kubernetes))
}

/// Pushes an image that has labels and nothing else; gives its name at the registry's address.
async fn operator_without_program(
    registry: &Registry,
    version: &str,
    labels: &BTreeMap<String, String>,
) -> Result<String> {
    let archive = Archive::of(&Contents {
        entrypoint: "/control-plane-operator".to_owned(),
        command: &[],
        files: vec![File::text("/version", version)],
    })?;
    let name = repository(OPERATOR);
    let pushed = registry
        .push_as(&name, version, &archive.with_labels(labels))
        .await?;
    let digest = pushed
        .split_once('@')
        .map_or(pushed.as_str(), |(_, digest)| digest);
    Ok(format!("{}/{name}@{digest}", registry.address()))
}

// === impl Payload ===

impl Payload {
    /// The released programs in its images.
    pub const PROGRAMS: [Binary; 18] = images::NEEDED;

    /// Builds what is missing, and puts all images together.
    pub async fn build(progress: &Progress) -> Result<Self> {
        Self::build_with(OptionalPrograms::default(), progress).await
    }

    /// The same with some programs that only some payloads have.
    pub async fn build_with(programs: OptionalPrograms, progress: &Progress) -> Result<Self> {
        base::install(progress).await?;
        let binaries = Binaries::ensure(&Self::programs(programs), progress).await?;
        let mut made = images::build(&binaries, programs, progress).await?;
        made.extend(images::optional(&binaries, programs)?);
        Ok(Self {
            made,
            stand_in: images::stand_in(progress).await?,
            kubernetes: Binary::KubeApiserver.version()?,
            olm: olm::manifests().await?,
        })
    }

    /// The released programs in its images, and those of `further`.
    pub fn programs(further: OptionalPrograms) -> Vec<Binary> {
        let mut programs = Self::PROGRAMS.to_vec();
        programs.extend(further.binaries());
        programs
    }

    /// Pushes the images whose programs are real. The releases come after them: [`Pushed::release`].
    pub async fn push(&self, registry: &Registry) -> Result<Pushed> {
        let mut components = BTreeMap::new();
        for Made { tag, archive } in &self.made {
            let reference = registry.push(&repository(tag), archive).await?;
            components.insert((*tag).to_owned(), reference);
        }
        Ok(Pushed {
            components,
            kubernetes: self.kubernetes.trim_start_matches('v').to_owned(),
            images: self.images(),
            olm: self.olm.clone(),
        })
    }

    fn images(&self) -> Vec<Image> {
        let real = self.made.iter().map(|Made { tag, archive }| Image {
            tag: (*tag).to_owned(),
            repository: repository(tag),
            archive: archive.clone(),
        });
        let is_real = |tag: &str| self.made.iter().any(|made| made.tag == tag);
        let others = stand_ins::tags().filter(|(tag, _)| !is_real(tag));
        let others = others.map(|(tag, program)| Image {
            tag: tag.to_owned(),
            repository: STAND_INS.to_owned(),
            archive: self
                .stand_in
                .variant(program, &format!("STANDS_IN_FOR={tag}")),
        });
        real.chain(others).collect()
    }
}

// === impl Pushed ===

impl Pushed {
    /// Pushes the release of a version. Nothing in it is the same image as in another one, as it is with those of
    /// OpenShift: what an upgrade rolls out is visible in all images.
    pub async fn release(&self, registry: &Registry, version: &str) -> Result<Release> {
        let pushes = self
            .images
            .iter()
            .map(|image| image.push(registry, version));
        let components = stream::iter(pushes)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let mut files = base::files()?;
        files.extend(manifests_of(version, &components, &self.kubernetes));
        files.extend(self.olm.iter().cloned());
        let archive = release_image(files)?;
        let tag = format!("{version}-x86_64");
        Ok(Release {
            version: version.to_owned(),
            digest: registry.push_as(REPOSITORY, &tag, &archive).await?,
            image: format!("{}/{REPOSITORY}:{tag}", registry::NAME),
        })
    }
}

// === impl Image ===

impl Image {
    /// Pushes it as the one of a release; gives its tag in the release, and its reference.
    async fn push(&self, registry: &Registry, version: &str) -> Result<(String, String)> {
        let archive = self.archive.with_variable(&format!("{RELEASE}={version}"));
        let tag = format!("{}-{version}", self.tag);
        let reference = registry.push_as(&self.repository, &tag, &archive).await?;
        Ok((self.tag.clone(), reference))
    }
}

fn repository(tag: &str) -> String {
    format!("payload/{tag}")
}

fn release_image(files: Vec<File>) -> Result<Archive> {
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
) -> Vec<File> {
    let mut files = references_of(version, components, kubernetes);
    files.push(boot_images(version));
    files
}

/// The same without the images that machines boot from.
fn references_of(
    version: &str,
    components: &BTreeMap<String, String>,
    kubernetes: &str,
) -> Vec<File> {
    let references = manifests::image_references(version, components, kubernetes);
    let mut files = vec![File::text(
        format!("{MANIFESTS}/image-references"),
        references.to_string(),
    )];
    files.extend(guest::files());
    files
}

/// The images that machines boot from.
fn boot_images(version: &str) -> File {
    File::text(
        format!("{MANIFESTS}/0000_50_installer_coreos-bootimages.yaml"),
        // JSON is YAML.
        manifests::boot_images(version).to_string(),
    )
}
