//! Stock Cluster API on private types, from its first cluster to its last, beside the platform's own.
//!
//! One ordered scenario on one testbed, because bringing machines up takes most of its time. What it shows:
//!
//! 1. With only private CRDs installed, clusters created through the proxy in the standard groups start, and etcd
//!    holds no key of a standard group.
//! 2. Scaling, rollouts, remediation and deletion end clean; the garbage collector, restarted in the middle, collects
//!    no Secret that is still owned.
//! 3. A cluster of a `ClusterClass` does the same; two minutes at rest bring no write.
//! 4. The platform's own Cluster API on the same API server, with objects of the same names: neither sees the other's,
//!    and each Cluster API keeps working after the other is removed (R32).

mod platform;
mod rest;
mod secrets;
mod stored;

use anyhow::{Context, Result, ensure};
use api::group::CapiTypes;
use testbed::client::ApiClient;
use testbed::cluster::Cluster;
use testbed::cluster_api::Plan;
use testbed::fixtures;
use testbed::life::Life;
use testbed::managers::Manager;
use testbed::progress::Progress;
use testbed::testbed::Testbed;

use crate::cluster_api::platform::Platform;

/// Namespace of the hosted clusters and of their managers.
const HOSTED: &str = "clusters-one";
/// Namespace of the platform's cluster.
const PLATFORM: &str = "platform";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_api_runs_on_private_types_next_to_the_platform() -> Result<()> {
    let mut testbed = Testbed::start("cluster-api", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    testbed.install_crds(CapiTypes::Private).await?;
    testbed.start_controller_manager().await?;
    testbed.add(&Plan::hosted(HOSTED)).await?;
    let view = testbed.standard_view().await?;

    let step = testbed
        .progress
        .step("two clusters come up, through the proxy");
    let mark = testbed.control_plane.audit.mark()?;
    let values = [("NAMESPACE", HOSTED), ("NAME", "one"), ("WORKERS", "3")];
    view.apply(&fixtures::render("cluster", &values)?).await?;
    let values = [("NAMESPACE", HOSTED), ("NAME", "two"), ("WORKERS", "3")];
    view.apply(&fixtures::render("topology", &values)?).await?;
    let one = Life::plain(Cluster::new(&view, HOSTED, "one"), &testbed.progress);
    let two = Life::managed(Cluster::new(&view, HOSTED, "two"), &testbed.progress);
    tokio::try_join!(one.comes_up(), two.comes_up())?;
    stored::only_private(&testbed.control_plane.etcd).await?;
    step.done();

    let secrets = secrets::of_clusters(&view, HOSTED, &["one", "two"]).await?;
    let ((), (), platform) = tokio::try_join!(
        one.run_lifecycle(),
        two.run_lifecycle(),
        disturb(testbed, &view)
    )?;

    let step = testbed.progress.step("two minutes at rest");
    let writes_before = rest::writes(testbed, mark)?;
    rest::nothing_is_written(testbed, &platform).await?;
    step.done_with(&format!("0 writes, after {writes_before} before"));

    secrets::collector_is_awake(&view, HOSTED).await?;
    let left = secrets::of_clusters(&view, HOSTED, &["one", "two"]).await?;
    ensure!(left == secrets, "Secrets were {secrets:?} and are {left:?}");
    secrets::none_wrongly_collected(testbed, &view, HOSTED).await?;

    let step = testbed
        .progress
        .step("each Cluster API keeps working after the other is removed");
    one.ends().await?;
    platform.is_unchanged(testbed).await?;
    platform.keeps_apart(testbed, HOSTED).await?;
    let private = stored::stored(&testbed.control_plane.etcd, CapiTypes::Private).await?;
    platform.ends(testbed).await?;
    secrets::collector_is_awake(&view, HOSTED).await?;
    let after = stored::stored(&testbed.control_plane.etcd, CapiTypes::Private).await?;
    ensure!(
        private == after,
        "removing the platform's Cluster API changed private objects"
    );
    step.done();

    let step = testbed.progress.step("the last cluster ends");
    two.ends().await?;
    secrets::all_gone(&view, HOSTED).await?;
    testbed.cluster_api(CapiTypes::Private)?.check()?;
    step.done();
    Ok(())
}

/// What happens meanwhile: the platform's Cluster API arrives, every proxy is killed and started again, and so is the
/// garbage collector.
async fn disturb(testbed: &mut Testbed, view: &ApiClient) -> Result<Platform> {
    testbed.add(&Plan::platform(&[Manager::Core])).await?;
    let platform = Platform::create(testbed, PLATFORM, "one").await?;
    let step = testbed
        .progress
        .step("proxies and kube-controller-manager are killed and started again");
    for manager in Manager::ALL {
        let running = testbed
            .cluster_api(CapiTypes::Private)?
            .manager_mut(manager)?;
        let proxy = running.proxy.as_mut().context("it has no proxy")?;
        proxy.service.kill();
        proxy.service.start().await?;
    }
    testbed.control_plane.controller_manager.kill();
    testbed.control_plane.controller_manager.start().await?;
    secrets::collector_is_awake(view, HOSTED).await?;
    step.done();
    Ok(platform)
}
