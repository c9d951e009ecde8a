//! A hosted cluster with a worker migrates under load, and neither its user nor its cloud notices.
//!
//! It is made by an installation without private types. Then private types are installed, and it migrates by itself:
//! while a client reads and writes its API all the time, and a workload runs on its node.
//! `cargo xtask soak migration-live` runs it. It needs root; without it, it says so and does nothing.

mod cloud;
mod fabric;

use anyhow::{Context, Result, ensure};
use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES};
use api::group::CapiTypes;
use testbed::conditions::find;
use testbed::hosted::{self, Cluster, Fixture, Load};
use testbed::node::NodeTestbed;

use cloud::Record;
use fabric::Fabric;

/// Checks M01 and M20b.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak migration-live"]
async fn migration_under_load_keeps_api_and_workers_available() -> Result<()> {
    hosted::play(NodeTestbed::builder("migration-live"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    fixture.install(CapiTypes::Standard, &[]).await?;
    let old = Cluster::new(fixture, "live", CapiTypes::Standard);
    old.create(&["--node-pool-replicas=1"]).await?;
    let guest = old.comes_up().await?;
    old.has_workers(&guest, 1).await?;
    guest.runs_a_workload(fixture).await?;
    old.rolled_out().await?;

    let before = Fabric::of(&old, &guest).await?;
    let load = Load::start(&guest.client).await?;
    let record = Record::start(fixture).await?;
    fixture.install(CapiTypes::Private, &[]).await?;
    let new = Cluster::new(fixture, old.name(), CapiTypes::Private);
    migrates(fixture, &new).await?;
    new.is_on_its_side().await.context("m20a")?;
    fixture.legacy_goes().await?;
    new.rolled_out().await?;
    new.has_workers(&guest, 1).await?;
    let calls = record.changes_nothing().await?;
    let seen = load.ends().await?;
    before.is_the_same(&Fabric::of(&new, &guest).await?)?;
    let summary = format!(
        "the client saw {seen}; the cloud saw {calls} calls, none of which changed anything"
    );
    fixture.testbed.progress.note(&summary);

    new.scale(2).await?;
    new.has_workers(&guest, 2).await?;
    guest.runs_a_workload(fixture).await?;
    new.destroy().await
}

/// Waits until it says that it is on private types, and is not locked.
async fn migrates(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
    fixture
        .stage("live: it migrates by itself", async || {
            let seen = cluster.seen().await?;
            let annotations = &seen["metadata"]["annotations"];
            let condition = find(&seen, "PrivateCAPITypes").context("it says nothing")?;
            ensure!(
                condition["status"] == "True"
                    && annotations[PRIVATE_CAPI_TYPES] == "true"
                    && annotations[MIGRATION_IN_PROGRESS].is_null(),
                "{condition}, with {annotations}"
            );
            Ok(())
        })
        .await
}
