//! What is shown, one act after the other.

mod hosted;
mod migration;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use testbed::cluster_api::{Plan, pods};
use testbed::hosted::{DEPLOYMENTS, OPERATORS};
use testbed::images::Image;
use testbed::node::condition;
use testbed::platform::{self, Platform};
use testbed::proxy::Upstream;
use testbed::view::View;
use testbed::{capi_storage, crds, registry};

use super::Stage;
use crate::show;
pub(super) use hosted::cluster as hosted;

/// Where the platform has its cluster.
const PLATFORM: &str = "platform";

/// A part of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The product is installed as it was before private types.
    Before,
    /// A control plane is made of pods.
    Create,
    /// The hosted cluster is used.
    Use,
    /// Private types are installed, and the cluster migrates.
    Migrate,
    /// The platform brings a Cluster API of another version.
    Platform,
    /// What is stored where.
    Apart,
    /// The hosted cluster is as it was.
    Nodes,
}

// === impl Act ===

impl Act {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 7] = [
        Self::Before,
        Self::Create,
        Self::Use,
        Self::Migrate,
        Self::Platform,
        Self::Apart,
        Self::Nodes,
    ];

    /// What it is called.
    pub(super) fn title(self) -> Result<String> {
        Ok(match self {
            Self::Before => {
                "hypershift install, as before private types: the standard groups are ours alone"
                    .to_owned()
            }
            Self::Create => {
                "hcp create cluster: a control plane as pods, and stock Cluster API makes its worker"
                    .to_owned()
            }
            Self::Use => "a Deployment in the hosted cluster".to_owned(),
            Self::Migrate => {
                "hypershift install --private-capi-types: the cluster migrates while it is used"
                    .to_owned()
            }
            Self::Platform => format!(
                "the names are free: the platform brings a Cluster API of its own, {}",
                platform::version()?
            ),
            Self::Apart => "who sees what, and what is stored where".to_owned(),
            Self::Nodes => "kubectl get nodes, in the hosted cluster".to_owned(),
        })
    }

    /// Plays it.
    pub(super) async fn play(self, stage: &mut Stage) -> Result<()> {
        match self {
            Self::Before => before(stage).await,
            Self::Create => hosted::create(stage).await,
            Self::Use => hosted::is_used(stage).await,
            Self::Migrate => migration::live(stage).await,
            Self::Platform => platform_comes(stage).await,
            Self::Apart => apart(stage).await,
            Self::Nodes => hosted::nodes(stage).await,
        }
    }
}

/// The product is installed on the standard groups, whose kinds are there in the version that it needs.
async fn before(stage: &Stage) -> Result<()> {
    let testbed = &stage.fixture.testbed;
    let step = testbed
        .progress
        .step("installing Cluster API's own kinds, in the one version that a cluster can have");
    let crds = crds::of_hosted_clusters(CapiTypes::Standard).await?;
    crds::install(&testbed.admin, &crds).await?;
    step.done_with(&format!("{} CRDs", crds.len()));
    install(stage, CapiTypes::Standard).await
}

/// Removes the standard CRDs of hosted clusters, and installs the platform's.
async fn platform_comes(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.fixture.testbed;
    let left = capi_storage::objects(&testbed.control_plane.etcd, CapiTypes::Standard).await?;
    ensure!(
        left.is_empty(),
        "there is something in the standard groups: {left:?}"
    );
    let step = testbed
        .progress
        .step("nothing is in the standard groups: their kinds go");
    let crds = crds::of_hosted_clusters(CapiTypes::Standard).await?;
    crds::remove(&testbed.admin, &crds).await?;
    step.done_with(&format!("{} CRDs", crds.len()));
    let plan = Plan::platform(&[platform::MANAGER]);
    let step = testbed.progress.step("installing its CRDs and its manager");
    let crds = platform::install_crds(&testbed.admin).await?;
    pods::deploy(testbed, &plan).await?;
    step.done_with(&format!("{crds} CRDs"));
    let step = testbed.progress.step("its cluster gets two machines");
    let manager = format!(
        "system:serviceaccount:{}:{}",
        plan.namespace(),
        platform::MANAGER.name()
    );
    let created =
        Platform::create(&testbed.admin, &testbed.control_plane, PLATFORM, &manager).await?;
    step.done_with(&format!("{} objects and CRDs", created.len()));
    stage.platform = Some(created);
    stage
        .types(&["kubectl", "-n", plan.namespace(), "get", "pods"])
        .await?;
    let machines = format!("machines.{}", show::core_group(CapiTypes::Standard));
    stage
        .types(&["kubectl", "-n", PLATFORM, "get", &machines])
        .await
}

/// Installs the product by its own command, for Cluster API's kinds of given types.
async fn install(stage: &Stage, capi_types: CapiTypes) -> Result<()> {
    let testbed = &stage.fixture.testbed;
    // The registry of this machine has no certificate.
    let variables = format!("INSECURE_REGISTRIES={}", registry::NAME);
    let mut words = vec!["hypershift", "install"];
    if capi_types == CapiTypes::Private {
        let proxy = testbed.image(Image::CapiProxy)?;
        words.extend(["--private-capi-types", "--capi-proxy-image", proxy]);
    }
    words.extend([
        "--hypershift-image",
        testbed.image(Image::HypershiftOperator)?,
        "--additional-operator-env-vars",
        &variables,
    ]);
    stage.types(&words).await?;
    let deployment = testbed
        .admin
        .get(&DEPLOYMENTS.named(OPERATORS, "operator"))
        .await?;
    condition(&deployment, "Available").context("what is installed does not run")?;
    stage
        .types(&["kubectl", "-n", OPERATORS, "get", "deployments,pods"])
        .await
}

/// The hosted cluster is in private groups and nowhere else; the platform's is as it was, and works.
async fn apart(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.fixture.testbed;
    let upstream = Upstream {
        program: stage.proxy.clone(),
        endpoint: testbed.control_plane.endpoint(),
    };
    let view = View::open(&testbed.admin, testbed.work_dir(), &upstream).await?;
    let namespace = hosted::cluster(stage).namespace();
    let client = view.client()?;
    let views = show::both_views(&client, &testbed.admin, &namespace, &show::HOSTED).await?;
    println!("\n{views}");
    stage.view = Some(view);
    let stored = hosted::cluster(stage).stored().await?;
    let (private, standard) = (stored.private.len(), stored.standard.len());
    println!(
        "in etcd, of namespace {namespace}: {private} objects in private groups, {standard} in standard groups"
    );
    ensure!(
        standard == 0 && private > 0,
        "the hosted cluster is not where it belongs"
    );
    let platform = stage.platform.as_mut().context("there is no platform")?;
    platform.is_unchanged(&testbed.control_plane).await?;
    println!(
        "the platform's own Cluster API {}: {} objects and CRDs, each as it was, to the byte",
        platform::version()?,
        platform.len()
    );
    let step = testbed
        .progress
        .step("a third machine is requested, and its own manager creates it");
    platform
        .scales(&testbed.admin, &testbed.control_plane, 3)
        .await?;
    step.done();
    Ok(())
}
