//! The tunnel between a hosted API server and its nodes, with the real konnectivity server and agents: what uses it, what
//! fails without it, and how both directions are reported.
//!
//! The machines are reached by konnectivity only: no test here would pass if the API server dialed nodes itself, because
//! the same requests fail while the agents are cut off.
//!
//! It takes a quarter of an hour, so `cargo xtask soak tunnel` runs it; that also compares the tunnel with a direct connection with
//! more commands and a longer stream than the test by itself.

mod attempts;
mod commands;
mod conditions;
mod extension;
mod faults;
mod figures;
mod kubectl;
mod proxy;

use anyhow::Result;
use api::group::CapiTypes;
use testbed::hosted::{self, Cluster, Fixture};
use testbed::node::NodeTestbed;

use crate::tunnel::proxy::Proxy;

/// The workers: an agent on each of them serves all.
const WORKERS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: cargo xtask soak tunnel"]
async fn a_hosted_api_server_reaches_its_nodes_through_konnectivity() -> Result<()> {
    hosted::play(NodeTestbed::builder("tunnel"), scenario).await
}

async fn scenario(fixture: &Fixture) -> Result<()> {
    fixture.install(CapiTypes::Private, &[]).await?;
    let cluster = Cluster::new(fixture, "demo", CapiTypes::Private);
    let workers = format!("--node-pool-replicas={WORKERS}");
    cluster.create(&[&workers]).await?;
    let guest = cluster.comes_up().await?;
    cluster.has_workers(&guest, WORKERS).await?;
    guest.has_a_network(fixture).await?;
    let pods = commands::pods(fixture, &guest.client, WORKERS).await?;
    commands::work(fixture, &guest, &pods).await?;
    conditions::are_true(&cluster).await?;
    extension::is_called(fixture, &guest).await?;
    proxy::service(&guest).await?;
    Proxy::of(fixture, &cluster).reaches_a_service().await?;
    // From here on, what loses the API server restarts.
    cluster.holds_invariants(&guest, true).await?;
    faults::agent_dies(fixture, &guest, &pods).await?;
    faults::server_dies(fixture, &cluster, &guest, &pods).await?;
    faults::agents_are_cut_off(fixture, &cluster, &guest, &pods).await?;
    conditions::follow_the_report(fixture, &cluster, &guest).await?;
    figures::show(fixture, &guest, &pods).await?;
    cluster.is_destroyed().await
}
