//! The stages, in order. Each names itself and shows how long it took.

use anyhow::{Context, Result};
use e2e::testbed::Testbed;

use crate::hosted_clusters_faults::ground::Ground;
use crate::hosted_clusters_faults::life::{self, Worlds};
use crate::hosted_clusters_faults::replicas::Replicas;
use crate::hosted_clusters_faults::{deaths, drift, removal, replacement};

pub(crate) async fn run(testbed: &mut Testbed) -> Result<()> {
    let ground = Ground::prepare(testbed).await?;
    let (mut replicas, worlds) = undisturbed(&ground).await?;
    deaths::scenario(&ground, &mut replicas, &worlds)
        .await
        .context("deaths")?;
    removal::scenario(&ground, &mut replicas)
        .await
        .context("removal")
}

/// A life in which nobody dies, with what does not change what comes of it.
async fn undisturbed<'a>(ground: &'a Ground<'a>) -> Result<(Replicas<'a>, Worlds)> {
    let progress = &ground.testbed.progress;
    let earlier = replacement::earlier(ground);
    let mut replicas = Replicas::start(ground, &earlier, replacement::PROXY).await?;
    let step = progress.step("a cluster is made");
    life::create(ground, &mut replicas)
        .await
        .context("create")?;
    step.done();
    let mut replicas = replacement::scenario(ground, replicas)
        .await
        .context("replacement")?;
    let created = life::world(ground).await?;
    drift::scenario(ground, &mut replicas, &created)
        .await
        .context("drift")?;
    let step = progress.step("it is upgraded and deleted");
    let upgraded = life::upgrade(ground, &mut replicas)
        .await
        .context("upgrade")?;
    life::delete(ground, &mut replicas)
        .await
        .context("delete")?;
    step.done_with(&format!("{} objects", upgraded.0.len()));
    Ok((replicas, Worlds { created, upgraded }))
}
