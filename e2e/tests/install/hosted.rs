//! Stock managers on the private types that were installed, while the platform's own manager is at work.

use std::time::Duration;

use anyhow::Result;
use api::group::Side;
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

/// A hosted cluster comes up and is deleted; in between the platform is asked for a machine more, and makes it.
pub(crate) async fn comes_and_goes(testbed: &mut Testbed, platform: &mut Platform) -> Result<()> {
    testbed.has_crds(Side::Private);
    testbed.add(&Plan::hosted(NAMESPACE)).await?;
    let view = testbed.standard_view().await?;
    let step = testbed
        .progress
        .step("a hosted cluster comes up on what was installed, and goes");
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
    let world = testbed.world(Side::Private)?;
    world.check()?;
    testbed.end(Side::Private);
    step.done();
    Ok(())
}
