//! The stages, in order. Each names itself and shows how long it took.

use anyhow::{Context, Result};
use testbed::hosted::invariants;
use testbed::testbed::Testbed;

use crate::hosted_clusters_faults::fixture::{Fixture, NAME, NAMESPACE};
use crate::hosted_clusters_faults::life::{self, Snapshots};
use crate::hosted_clusters_faults::replicas::Replicas;
use crate::hosted_clusters_faults::{deaths, drift, platforms, removal, replacement};

pub(crate) async fn run(testbed: &mut Testbed) -> Result<()> {
    let fixture = Fixture::prepare(testbed).await?;
    let (mut replicas, cluster_apis) = undisturbed(&fixture).await?;
    deaths::scenario(&fixture, &mut replicas, &cluster_apis)
        .await
        .context("deaths")?;
    platforms::scenario(&fixture, &mut replicas)
        .await
        .context("platforms")?;
    removal::scenario(&fixture, &mut replicas)
        .await
        .context("removal")
}

/// A lifecycle in which no operator is killed, with events that must not change its result.
async fn undisturbed<'a>(fixture: &'a Fixture<'a>) -> Result<(Replicas<'a>, Snapshots)> {
    let progress = &fixture.testbed.progress;
    let earlier = replacement::earlier(fixture);
    let mut replicas = Replicas::start(fixture, &earlier, replacement::PROXY).await?;
    let step = progress.step("a cluster is made");
    life::create(fixture, &mut replicas)
        .await
        .context("create")?;
    step.done();
    let mut replicas = replacement::scenario(fixture, replicas)
        .await
        .context("replacement")?;
    let created = life::snapshot(fixture).await?;
    invariants::of_workloads(&fixture.testbed.admin, NAMESPACE, NAME).await?;
    drift::scenario(fixture, &mut replicas, &created)
        .await
        .context("drift")?;
    let step = progress.step("it is upgraded and deleted");
    let upgraded = life::upgrade(fixture, &mut replicas)
        .await
        .context("upgrade")?;
    life::delete(fixture, &mut replicas)
        .await
        .context("delete")?;
    step.done_with(&format!("{} objects", upgraded.0.len()));
    Ok((replicas, Snapshots { created, upgraded }))
}
