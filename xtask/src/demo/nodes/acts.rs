//! What is shown, one act after the other.

use anyhow::{Context, Result, ensure};
use api::group::Side;
use e2e::client::Resource;
use e2e::cluster_api::{Plan, pods};
use e2e::images::Image;
use e2e::node::condition;
use e2e::platform::{self, Platform};
use e2e::proxy::Upstream;
use e2e::sides;
use e2e::view::View;

use super::Stage;
use crate::demo::narration;
use crate::show;
use crate::testbed::NAMESPACE;

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
    /// Stock Cluster API, for hosted control planes.
    Managers,
    /// A cluster comes up.
    Cluster,
    /// What is stored where.
    Apart,
}

// === impl Act ===

impl Act {
    /// All of them, in their order.
    pub(super) const ALL: [Self; 5] = [
        Self::Platform,
        Self::Install,
        Self::Managers,
        Self::Cluster,
        Self::Apart,
    ];

    /// What it is called.
    pub(super) fn title(self) -> Result<String> {
        Ok(match self {
            Self::Platform => format!(
                "the platform has a Cluster API of its own, {}, and a cluster",
                platform::version()?
            ),
            Self::Install => "hypershift install --private-capi-types".to_owned(),
            Self::Managers => {
                "stock Cluster API v1.13 for hosted control planes, as pods with the proxy beside them"
                    .to_owned()
            }
            Self::Cluster => "a cluster comes up".to_owned(),
            Self::Apart => "who sees what, and what is stored where".to_owned(),
        })
    }

    /// Plays it.
    pub(super) async fn play(self, stage: &mut Stage) -> Result<()> {
        match self {
            Self::Platform => platform_is_first(stage).await,
            Self::Install => install(stage).await,
            Self::Managers => managers(stage).await,
            Self::Cluster => {
                let view = stage.view()?.client()?;
                narration::comes_up(&view, &stage.testbed.progress).await
            }
            Self::Apart => apart(stage).await,
        }
    }
}

async fn platform_is_first(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.testbed;
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
    let testbed = &stage.testbed;
    let words = [
        "hypershift",
        "install",
        "--private-capi-types",
        "--hypershift-image",
        testbed.image(Image::HypershiftOperator)?,
        "--capi-proxy-image",
        testbed.image(Image::CapiProxy)?,
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

async fn managers(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.testbed;
    let plan = Plan::hosted(NAMESPACE);
    let step = testbed
        .progress
        .step("four unmodified managers start, each with its own service account and proxy");
    pods::deploy(testbed, &plan).await?;
    let upstream = Upstream {
        program: stage.programs.proxy.clone(),
        endpoint: testbed.control_plane.endpoint(),
    };
    stage.view = Some(View::open(&testbed.admin, testbed.home(), &upstream).await?);
    step.done();
    stage
        .types(&["kubectl", "-n", NAMESPACE, "get", "pods"])
        .await
}

/// The hosted cluster is in private groups and nowhere else; the platform's is as it was, and works.
async fn apart(stage: &mut Stage) -> Result<()> {
    let testbed = &stage.testbed;
    let view = stage.view()?.client()?;
    println!(
        "\n{}",
        show::both_views(&view, &testbed.admin, NAMESPACE).await?
    );
    let etcd = &testbed.control_plane.etcd;
    let count = async |side| {
        let keys = sides::objects(etcd, side).await?;
        let within = format!("/{NAMESPACE}/");
        anyhow::Ok(keys.iter().filter(|key| key.contains(&within)).count())
    };
    let (private, standard) = (count(Side::Private).await?, count(Side::Standard).await?);
    println!(
        "in etcd, of namespace {NAMESPACE}: {private} objects in private groups, {standard} in standard groups"
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
