//! A hosted cluster with a worker migrates under load, and neither its user nor the platform of its machines notices.
//!
//! It is made by an installation without private types. Then private types are installed, and it migrates by itself:
//! while a client reads and writes its API all the time, and a workload runs on its node. The machines are instances of
//! AWS, unless the variable `HYPERSHIFT_MIGRATION_PLATFORM` says `agent`.
//! `cargo xtask soak migration-live` runs it. It needs root; without it, it says so and does nothing.

mod agent;
mod cloud;
mod fabric;
mod machines;
mod processes;

use anyhow::{Context, Result, bail, ensure};
use api::annotations::{MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES};
use api::group::CapiTypes;
use testbed::conditions::find;
use testbed::hosted::{self, Cluster, Fixture, Load};
use testbed::node::NodeTestbed;

use agent::Hosts;
use cloud::Instances;
use fabric::Fabric;
use machines::Machines;

/// Environment variable that says which machines the cluster has.
const PLATFORM: &str = "HYPERSHIFT_MIGRATION_PLATFORM";

/// Checks M01 and M20b.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak migration-live"]
async fn migration_under_load_keeps_api_and_workers_available() -> Result<()> {
    hosted::play(NodeTestbed::builder("migration-live"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    match std::env::var(PLATFORM).as_deref() {
        Err(_) | Ok("aws") => migrates_under_load(fixture, &Instances::of(fixture)).await,
        Ok("agent") => {
            let hosts = Hosts::start(fixture).await?;
            let migrated = migrates_under_load(fixture, &hosts).await;
            if migrated.is_err() {
                fixture.testbed.progress.note(&hosts.said());
            }
            migrated
        }
        Ok(other) => bail!("{PLATFORM} is {other:?}, and may be aws or agent"),
    }
}

async fn migrates_under_load(fixture: &Fixture, machines: &impl Machines) -> Result<()> {
    let flags = machines.flags();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    fixture.install(CapiTypes::Standard, &flags).await?;
    let old = Cluster::on(fixture, "live", CapiTypes::Standard, machines.platform());
    old.create(&["--node-pool-replicas=1"]).await?;
    let guest = old.comes_up().await?;
    old.has_workers(&guest, 1).await?;
    guest.runs_a_workload(fixture).await?;
    old.rolled_out().await?;

    let before = Fabric::of(&old, &guest, machines).await?;
    let load = Load::start(&guest.client).await?;
    let record = machines.record().await?;
    fixture.install(CapiTypes::Private, &flags).await?;
    let new = Cluster::on(fixture, old.name(), CapiTypes::Private, machines.platform());
    migrates(fixture, &new).await?;
    new.is_on_its_side().await.context("m20a")?;
    fixture.legacy_goes().await?;
    new.rolled_out().await?;
    new.has_workers(&guest, 1).await?;
    let requests = machines.are_untouched(record).await?;
    let seen = load.ends().await?;
    before.is_the_same(&Fabric::of(&new, &guest, machines).await?)?;
    let summary = format!("the client saw {seen}; {requests}");
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
