//! A hosted cluster with a worker migrates under load, and neither its user nor the platform of its machines notices.
//!
//! It is made by an installation without private types. Then private types are installed, and it migrates by itself:
//! while a client reads and writes its API all the time, and a workload runs on its node. The machines are instances of
//! AWS, unless the variable `HYPERSHIFT_MIGRATION_PLATFORM` says `agent` or `kubevirt`.
//! `cargo xtask soak migration-live` runs it. It needs root; without it, it says so and does nothing.

mod agent;
mod cloud;
mod conversion;
mod fabric;
mod kubevirt;
mod machines;
mod objects;
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
use kubevirt::VirtualHosts;
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
        Err(_) | Ok("aws") => migrates(fixture, &Instances::of(fixture)).await,
        Ok("agent") => migrates(fixture, &Hosts::start(fixture).await?).await,
        Ok("kubevirt") => migrates(fixture, &VirtualHosts::start(fixture).await?).await,
        Ok(other) => bail!("{PLATFORM} is {other:?}, and may be aws, agent or kubevirt"),
    }
}

/// The scenario with such machines; if it fails, what they have said.
async fn migrates(fixture: &Fixture, machines: &impl Machines) -> Result<()> {
    let migrated = migrates_under_load(fixture, machines).await;
    let said = machines.said();
    if migrated.is_err() && !said.is_empty() {
        fixture.testbed.progress.note(&said);
    }
    migrated
}

async fn migrates_under_load(fixture: &Fixture, machines: &impl Machines) -> Result<()> {
    install(fixture, machines, CapiTypes::Standard).await?;
    machines.extend_standard().await?;
    let old = Cluster::on(fixture, "live", CapiTypes::Standard, machines.platform());
    old.create(&["--node-pool-replicas=1"]).await?;
    let guest = old.comes_up().await?;
    old.has_workers(&guest, 1).await?;
    guest.runs_a_workload(fixture).await?;
    old.rolled_out().await?;

    let before = Fabric::of(&old, &guest, machines).await?;
    let load = Load::start(&guest.client).await?;
    let record = machines.record().await?;
    install(fixture, machines, CapiTypes::Private).await?;
    let new = Cluster::on(fixture, old.name(), CapiTypes::Private, machines.platform());
    is_migrated(fixture, &new).await?;
    new.is_on_its_side().await?;
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

/// Installs the operators, with what the machines need.
async fn install(fixture: &Fixture, machines: &impl Machines, types: CapiTypes) -> Result<()> {
    let flags = machines.flags(types);
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    fixture.install(types, &flags).await.map(drop)
}

/// Waits until it says that it is on private types, and is not locked.
async fn is_migrated(fixture: &Fixture, cluster: &Cluster<'_>) -> Result<()> {
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
