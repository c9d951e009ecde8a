//! Hosted clusters that were made on standard types migrate by themselves, on a real API server without nodes.
//!
//! Both operators run as processes with the rights of an installation. One cluster has its control-plane-operator and
//! the stock core manager of Cluster API, which run, stop and change sides as their Deployments say; of the others a
//! control plane gets a good status. `cargo xtask soak migration-fleet` takes a large fleet, and kills more often.

mod commands;
mod controllers;
mod deletions;
mod fixture;
mod fleet;
mod infra_cluster;
mod killed;
mod machines;
mod member;
mod platform;
mod platforms;
mod poison;
mod same;
mod trail;
mod whole;

use anyhow::{Context, Result};
use testbed::progress::Progress;
use testbed::testbed::Testbed;
use tokio::sync::Mutex;

use fixture::{Fixture, Platforms};

/// Two API servers at a time, with all that works on them, are more than two processors bear.
static TURN: Mutex<()> = Mutex::const_new(());

/// One cluster with all its controllers migrates automatically, is rolled back on request, and migrates again.
/// Checks M01, M12, M13 and M15.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migration_and_rollback_preserve_a_cluster() -> Result<()> {
    let _turn = TURN.lock().await;
    let mut testbed = Testbed::start("migration-one", Progress::detect()).await?;
    let outcome = one(&mut testbed).await;
    testbed.finish(outcome)
}

async fn one(testbed: &mut Testbed) -> Result<()> {
    let mut fixture = Fixture::prepare(testbed, Platforms::Aws).await?;
    whole::scenario(testbed, &mut fixture).await?;
    commands::groups(testbed, &fixture)
        .await
        .context("migrate groups")
}

/// A cluster of each platform migrates, with the objects that its provider leaves.
/// Checks M01 and M04.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_of_every_platform_migrate() -> Result<()> {
    let _turn = TURN.lock().await;
    let mut testbed = Testbed::start("migration-platforms", Progress::detect()).await?;
    let outcome = every_platform(&mut testbed).await;
    testbed.finish(outcome)
}

async fn every_platform(testbed: &mut Testbed) -> Result<()> {
    let mut fixture = Fixture::prepare(testbed, Platforms::All).await?;
    platforms::scenario(testbed, &mut fixture).await
}

/// Many clusters of all platforms, some of which cannot migrate, while their operator is killed.
/// Checks M02, M12, M19 and M20.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak migration-fleet"]
async fn a_fleet_migrates_automatically() -> Result<()> {
    let _turn = TURN.lock().await;
    let mut testbed = Testbed::start("migration-fleet", Progress::detect()).await?;
    let outcome = many(&mut testbed).await;
    testbed.finish(outcome)
}

async fn many(testbed: &mut Testbed) -> Result<()> {
    let mut fixture = Fixture::prepare(testbed, Platforms::All).await?;
    fleet::scenario(testbed, &mut fixture).await
}
