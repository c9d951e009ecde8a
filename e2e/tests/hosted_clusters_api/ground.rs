//! What the operators find: kinds, releases in a registry, and themselves with their rights.

use std::sync::Arc;

use anyhow::Result;
use api::group::Side;
use e2e::binaries::{Binaries, Binary};
use e2e::operator::{self, Identity, Operator, Replica, SOON};
use e2e::registry::Registry;
use e2e::service_account::ensure_namespace;
use e2e::site::Site;
use e2e::testbed::Testbed;
use e2e::{crds, fixtures, payload, wait};

use crate::other_platforms;

/// Namespace of HostedClusters.
pub(crate) const NAMESPACE: &str = "clusters";
/// Where machines are.
pub(crate) const MACHINES: &str = "10.0.0.0/16";

/// An operator that runs.
pub(crate) struct Running {
    pub(crate) identity: Identity,
    pub(crate) replica: Replica,
}

/// All of it. The registry serves as long as this lives.
pub(crate) struct Ground {
    pub(crate) operators: Vec<Running>,
    /// The release of clusters, and an older one for nodes.
    pub(crate) release: String,
    pub(crate) older: String,
    _registry: Registry,
}

// === impl Ground ===

impl Ground {
    pub(crate) async fn prepare(testbed: &mut Testbed) -> Result<Self> {
        install_kinds(testbed).await?;
        testbed.start_controller_manager().await?;
        ensure_namespace(&testbed.admin, NAMESPACE).await?;
        let step = testbed.progress.step("pushing releases");
        let binaries = Binaries::ensure(&[Binary::Registry], &testbed.progress).await?;
        let home = Arc::clone(testbed.home());
        let mut registry = Registry::new(binaries.path(Binary::Registry)?, Site::Loopback, &home)?;
        registry.service.start().await?;
        let release = payload::without_images(&registry, "4.22.0").await?;
        let older = payload::without_images(&registry, "4.21.9").await?;
        step.done();
        let host = registry.address().to_string();
        let program = operator::build(&testbed.progress).await?;
        let mut operators = Vec::new();
        for which in Operator::ALL {
            let identity = Identity::create(testbed, which, &program)
                .await?
                .with_flag("insecure-registries", &host)
                .with_flag("capi-proxy-image", "images.example.com/capi-proxy:v1")
                .with_flag(
                    "agent-capi-provider-image",
                    "images.example.com/capi-agent:v1",
                );
            operators.push(Running::start(testbed, identity).await?);
        }
        Ok(Self {
            operators,
            release,
            older,
            _registry: registry,
        })
    }
}

// === impl Running ===

impl Running {
    async fn start(testbed: &Testbed, identity: Identity) -> Result<Self> {
        let pod = format!("{}-1", identity.operator.name());
        let mut replica = identity.replica(testbed, &pod)?;
        replica.service.start().await?;
        let what = format!("{pod} to be ready");
        wait::until(&what, SOON, async || replica.is_ready().await).await?;
        Ok(Self { identity, replica })
    }
}

/// Ours, Cluster API's and the AWS provider's on both sides, and OpenShift's routes.
async fn install_kinds(testbed: &mut Testbed) -> Result<()> {
    let manifests = fixtures::install_manifests().join("../crds");
    let mut own = Vec::new();
    for entry in std::fs::read_dir(manifests)? {
        own.extend(fixtures::load(&entry?.path())?);
    }
    let routes = fixtures::render("node/routes", &[])?.into_iter();
    own.extend(routes.filter(|object| object["kind"] == "CustomResourceDefinition"));
    own.extend(other_platforms::kinds());
    crds::install(&testbed.admin, &own).await?;
    for side in [Side::Private, Side::Standard] {
        testbed.install_crds(side).await?;
        crds::install(&testbed.admin, &crds::aws(side).await?).await?;
    }
    Ok(())
}
