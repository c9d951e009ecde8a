//! The kinds that operators of hosted clusters find, and the registry with releases.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use api::group::CapiTypes;

use ::payload::Capability;

use crate::agents;
use crate::binaries::{Binaries, Binary};
use crate::images::Image;
use crate::operator::NAMESPACE;
use crate::providers::Provider;
use crate::registry::Registry;
use crate::site::Site;
use crate::testbed::Testbed;
use crate::{crds, fixtures, payload};

/// Private and standard types.
const BOTH: [CapiTypes; 2] = [CapiTypes::Private, CapiTypes::Standard];
/// The providers of all platforms: one for each program.
const PROVIDERS: [Provider; 6] = [
    Provider::Aws,
    Provider::Azure,
    Provider::Gcp,
    Provider::Ibmcloud,
    Provider::Kubevirt,
    Provider::Openstack,
];

/// Ours, Cluster API's and the AWS provider's with both types, and OpenShift's routes; with the `PriorityClass`es of an
/// installation, which control planes name.
pub async fn install_kinds(testbed: &mut Testbed) -> Result<()> {
    install(testbed, "crds", &[Provider::Aws], &BOTH).await
}

/// The same for clusters on every platform, with those of the technology preview: the kinds of all providers, and
/// stand-ins for those of platform Agent.
pub async fn install_all_kinds(testbed: &mut Testbed) -> Result<()> {
    crds::install(&testbed.admin, &agents::kinds::definitions()).await?;
    install(testbed, "crds-tech-preview", &PROVIDERS, &BOTH).await
}

/// Ours with the technology preview, and those of some providers with private types only: what an installation without
/// clusters on standard types has.
pub async fn install_preview_kinds(testbed: &mut Testbed, providers: &[Provider]) -> Result<()> {
    let private = [CapiTypes::Private];
    install(testbed, "crds-tech-preview", providers, &private).await
}

/// Installs our kinds from a directory of manifests, and those of Cluster API and some providers with given types.
async fn install(
    testbed: &mut Testbed,
    manifests: &str,
    providers: &[Provider],
    all_types: &[CapiTypes],
) -> Result<()> {
    let manifests = fixtures::install_manifests().join("..").join(manifests);
    let mut own = Vec::new();
    for entry in std::fs::read_dir(manifests)? {
        own.extend(fixtures::load(&entry?.path())?);
    }
    let routes = fixtures::render("node/routes", &[])?.into_iter();
    own.extend(routes.filter(|object| object["kind"] == "CustomResourceDefinition"));
    crds::install(&testbed.admin, &own).await?;
    let priorities = cli::install::priority_classes(NAMESPACE);
    testbed.admin.apply(&priorities).await?;
    for &capi_types in all_types {
        testbed.install_crds(capi_types).await?;
        for provider in providers {
            let definitions = crds::provider(*provider, capi_types).await?;
            crds::install(&testbed.admin, &definitions).await?;
        }
    }
    Ok(())
}

/// A registry that serves releases with images that do not exist, until this is dropped.
#[derive(Debug)]
pub struct Releases {
    registry: Registry,
}

// === impl Releases ===

impl Releases {
    /// Starts the registry.
    pub async fn start(testbed: &Testbed) -> Result<Self> {
        let binaries = Binaries::ensure(&[Binary::Registry], &testbed.progress).await?;
        let work_dir = Arc::clone(testbed.work_dir());
        let program = binaries.path(Binary::Registry)?;
        let mut registry = Registry::new(program, Site::Loopback, &work_dir)?;
        registry.service.start().await?;
        Ok(Self { registry })
    }

    /// Pushes a release of today; gives its image.
    pub async fn push(&self, version: &str) -> Result<String> {
        let labels = without_security_groups();
        payload::without_images(&self.registry, version, &labels).await
    }

    /// Pushes a release of today that has no images for machines to boot from.
    pub async fn push_without_boot_images(&self, version: &str) -> Result<String> {
        let labels = without_security_groups();
        payload::without_boot_images(&self.registry, version, &labels).await
    }

    /// Pushes a release of today for nodes of another architecture than `amd64`.
    pub async fn push_for(&self, version: &str, architecture: &str) -> Result<String> {
        let labels = without_security_groups();
        payload::without_images_for(&self.registry, version, architecture, &labels).await
    }

    /// Pushes a release from before private types: the image of its control-plane-operator says nothing of them.
    pub async fn push_old(&self, version: &str) -> Result<String> {
        let labels = Capability::ALL.iter();
        let labels = labels.filter(|it| **it != Capability::PrivateTypes);
        let labels = labels.map(|it| (it.label(), "true".to_owned())).collect();
        payload::without_images(&self.registry, version, &labels).await
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.registry.address().to_string()
    }
}

/// The labels of today's control-plane-operator, except that it creates security groups: none runs, and machines would wait
/// for one forever.
fn without_security_groups() -> BTreeMap<String, String> {
    let mut labels = Image::ControlPlaneOperator.recipe().labels();
    labels.remove(&Capability::CreatesAwsSecurityGroup.label());
    labels
}
