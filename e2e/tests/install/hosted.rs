//! Stock managers with the installed private types, while the platform's own manager is at work.

use std::time::Duration;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::cluster::{Cluster, Shape};
use testbed::cluster_api::Plan;
use testbed::fixtures;
use testbed::platform::Platform;
use testbed::testbed::Testbed;

const NAMESPACE: &str = "clusters-one";
const NAME: &str = "one";
/// Generous: a busy machine is no failure.
const WITHIN: Duration = Duration::from_mins(4);
const SHAPE: Shape = Shape {
    control_plane: 1,
    workers: 1,
};

/// A hosted cluster starts and is deleted; in between, one more machine is requested of the platform, which creates it.
pub(crate) async fn comes_and_goes(testbed: &mut Testbed, platform: &mut Platform) -> Result<()> {
    testbed.has_crds(CapiTypes::Private);
    testbed.add(&Plan::hosted(NAMESPACE)).await?;
    let view = testbed.standard_view().await?;
    let step = testbed
        .progress
        .step("a hosted cluster is created on what was installed, and deleted");
    let values = [("NAMESPACE", NAMESPACE), ("NAME", NAME), ("WORKERS", "1")];
    view.apply(&fixtures::render("cluster", &values)?).await?;
    let cluster = Cluster::new(&view, NAMESPACE, NAME);
    cluster.settled(SHAPE, WITHIN).await?;
    platform
        .scales(&testbed.admin, &testbed.control_plane, 3)
        .await?;
    cluster.delete().await?;
    cluster.gone(WITHIN).await?;
    platform.is_unchanged(&testbed.control_plane).await?;
    let cluster_api = testbed.cluster_api(CapiTypes::Private)?;
    cluster_api.check()?;
    testbed.end(CapiTypes::Private);
    step.done();
    Ok(())
}
