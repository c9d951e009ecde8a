//! Clusters that stock managers have made and keep, one of them of a `ClusterClass`: moved to the private groups, where the
//! same programs continue behind proxies, and back.
//!
//! What it shows:
//!
//! 1. Nothing changes: no machine is created, deleted or replaced, and nothing rolls out (M01, M20b), while the garbage
//!    collector is killed and started again (M04).
//! 2. On the other side clusters live as before: they scale, roll out, replace a broken node.
//! 3. The way back is as good, and clusters end clean after it.

mod managed;
mod unmoved;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::group::CapiTypes;
use migration::groups::Direction;
use testbed::cluster::Cluster;
use testbed::fixtures;
use testbed::life::Life;
use testbed::migration::object_snapshot::{ObjectSnapshot, holds};
use testbed::migration::{End, Manner, client, migrate};
use testbed::progress::Progress;
use testbed::service_account::ensure_namespace;
use testbed::testbed::Testbed;

use crate::migration_managers::managed::Managed;
use crate::migration_managers::unmoved::Likeness;

/// Namespace of the clusters.
const NAMESPACE: &str = "clusters-one";
/// How long nothing may happen after a migration. Rollouts have been seen to begin minutes later, so
/// `cargo xtask soak managers` looks for five.
const WATCHED: Duration = Duration::from_secs(20);
/// The variable that says how many seconds else.
const SECONDS: &str = "HYPERSHIFT_MIGRATION_WATCH";

/// Checks M01, M04 and M20b.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_api_managers_continue_after_migration() -> Result<()> {
    let mut testbed = Testbed::start("migration-managers", Progress::detect()).await?;
    let outcome = scenario(&mut testbed).await;
    testbed.finish(outcome)
}

async fn scenario(testbed: &mut Testbed) -> Result<()> {
    for capi_types in [CapiTypes::Standard, CapiTypes::Private] {
        testbed.install_crds(capi_types).await?;
    }
    testbed.start_controller_manager().await?;
    ensure_namespace(&testbed.admin, NAMESPACE).await?;
    let mut managed = Managed::start(testbed, NAMESPACE).await?;

    let step = testbed
        .progress
        .step("two clusters come up on standard types");
    for (fixture, name) in [("cluster", "one"), ("topology", "two")] {
        let values = [("NAMESPACE", NAMESPACE), ("NAME", name), ("WORKERS", "3")];
        let objects = fixtures::render(fixture, &values)?;
        testbed.admin.apply(&objects).await?;
    }
    let [one, two] = clusters_of(testbed, CapiTypes::Standard).await?;
    tokio::try_join!(one.comes_up(), two.comes_up())?;
    step.done();

    moves(testbed, &mut managed, Direction::Forward).await?;
    let [one, two] = clusters_of(testbed, CapiTypes::Private).await?;
    tokio::try_join!(one.run_lifecycle(), two.run_lifecycle())?;

    moves(testbed, &mut managed, Direction::Reverse).await?;
    let [one, two] = clusters_of(testbed, CapiTypes::Standard).await?;
    let step = testbed.progress.step("workers come and everything ends");
    tokio::try_join!(one.scale(3, 3), two.scale(3, 3))?;
    tokio::try_join!(one.ends(), two.ends())?;
    step.done();
    managed.check(testbed)
}

/// Both clusters, as a user sees them who knows standard types only.
async fn clusters_of(testbed: &mut Testbed, capi_types: CapiTypes) -> Result<[Life; 2]> {
    let view = testbed.view_of(capi_types).await?;
    let cluster = |name| Cluster::new(&view, NAMESPACE, name);
    Ok([
        Life::plain(cluster("one"), &testbed.progress),
        Life::managed(cluster("two"), &testbed.progress),
    ])
}

/// Moves both; nothing may be different, and nothing may happen.
async fn moves(testbed: &mut Testbed, managed: &mut Managed, direction: Direction) -> Result<()> {
    let clusters = clusters_of(testbed, direction.source()).await?;
    let before = Likeness::of(&clusters, testbed, direction.source()).await?;
    managed.stop(testbed)?;
    let client = client(testbed.control_plane.admin_kubeconfig()).await?;
    let object_snapshot = ObjectSnapshot::of(&client, NAMESPACE).await?;
    let step = testbed.progress.step(format!("{direction:?}"));
    let manner = Manner::default();
    let collector = &mut testbed.control_plane.controller_manager;
    let moving = migrate(&client, NAMESPACE, direction, &manner, holds);
    let (end, ()) = tokio::try_join!(moving, async {
        collector.kill();
        collector.start().await
    })?;
    let End::Moved(counts) = end else {
        bail!("it ended as {end:?}");
    };
    let after = ObjectSnapshot::of(&client, NAMESPACE).await?;
    object_snapshot.same_as(&after).context("m01")?;
    step.done_with(&format!("{} objects, {counts:?}", after.moved.len()));

    managed.go_on(testbed, direction.target()).await?;
    let clusters = clusters_of(testbed, direction.target()).await?;
    before
        .stays(&clusters, testbed, direction.target(), watched())
        .await
}

fn watched() -> Duration {
    let seconds = std::env::var(SECONDS)
        .ok()
        .and_then(|text| text.parse().ok());
    seconds.map_or(WATCHED, Duration::from_secs)
}
