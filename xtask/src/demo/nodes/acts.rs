//! What is shown, one act after the other.

mod hosted;

use anyhow::{Context, Result, ensure};
use api::group::Side;
use e2e::client::Resource;
use e2e::cluster_api::{Plan, pods};
use e2e::images::Image;
use e2e::node::condition;
use e2e::platform::{self, Platform};
use e2e::proxy::Upstream;
use e2e::view::View;
use e2e::{registry, sides};

use super::Stage;
use crate::show;
pub(super) use hosted::cluster as hosted;

/// Where the platform has its cluster.
const PLATFORM: &str = "platform";
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
/// Where the product is installed.
const INSTALLED: &str = "hypershift";

/// A part of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// The platform is there first.
    Platform,
    /// The product is installed.
    Install,
    /// A control plane is made of pods.
    Create,
    /// What is stored where.
    Apart,
    /// The hosted cluster is used.
    Use,
}

// === impl Act ===

impl Act {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 5] = [
        Self::Platform,
        Self::Install,
        Self::Create,
        Self::Apart,
        Self::Use,
    ];

    /// What it is called.
    pub(super) fn title(self) -> Result<String> {
        Ok(match self {
            Self::Platform => format!(
                "the platform has a Cluster API of its own, {}, and a cluster",
                platform::version()?
            ),
            Self::Install => "hypershift install --private-capi-types".to_owned(),
            Self::Create => {
                "hcp create cluster: a control plane as pods, and stock Cluster API makes its worker"
                    .to_owned()
            }
            Self::Apart => "who sees what, and what is stored where".to_owned(),
            Self::Use => "kubectl get nodes, in the hosted cluster".to_owned(),
        })
    }

    /// Plays it.
    pub(super) async fn play(self, stage: &mut Stage) -> Result<()> {
        match self {
            Self::Platform => platform_is_first(stage).await,
            Self::Install => install(stage).await,
            Self::Create => hosted::create(stage).await,
            Self::Apart => apart(stage).await,
            Self::Use => hosted::is_used(stage).await,
        }
    }
}

async fn platform_is_first(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.ground.testbed;
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
    let machines = format!("machines.{}", show::core_group(Side::Standard));
    stage
        .types(&["kubectl", "-n", PLATFORM, "get", &machines])
        .await
}

async fn install(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.ground.testbed;
    // The registry of this machine has no certificate.
    let variables = format!("INSECURE_REGISTRIES={}", registry::NAME);
    let words = [
        "hypershift",
        "install",
        "--private-capi-types",
        "--hypershift-image",
        testbed.image(Image::HypershiftOperator)?,
        "--capi-proxy-image",
        testbed.image(Image::CapiProxy)?,
        "--additional-operator-env-vars",
        &variables,
    ];
    stage.types(&words).await?;
    let deployment = testbed
        .admin
        .get(&DEPLOYMENTS.named(INSTALLED, "operator"))
        .await?;
    condition(&deployment, "Available").context("what is installed does not run")?;
    stage
        .types(&["kubectl", "-n", INSTALLED, "get", "deployments,pods"])
        .await
}

/// The hosted cluster is in private groups and nowhere else; the platform's is as it was, and works.
async fn apart(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.ground.testbed;
    let upstream = Upstream {
        program: stage.proxy.clone(),
        endpoint: testbed.control_plane.endpoint(),
    };
    let view = View::open(&testbed.admin, testbed.home(), &upstream).await?;
    let namespace = hosted::cluster(stage).namespace();
    let client = view.client()?;
    let views = show::both_views(&client, &testbed.admin, &namespace, &show::HOSTED).await?;
    println!("\n{views}");
    stage.view = Some(view);
    let etcd = &testbed.control_plane.etcd;
    let count = async |side| {
        let keys = sides::objects(etcd, side).await?;
        let within = format!("/{namespace}/");
        anyhow::Ok(keys.iter().filter(|key| key.contains(&within)).count())
    };
    let (private, standard) = (count(Side::Private).await?, count(Side::Standard).await?);
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
        .step("it is asked for a third machine, and its own manager makes it");
    platform
        .scales(&testbed.admin, &testbed.control_plane, 3)
        .await?;
    step.done();
    Ok(())
}
