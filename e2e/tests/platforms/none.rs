//! A cluster with machines that its user provides.

use anyhow::{Result, ensure};
use api::group::CapiTypes;
use testbed::capi_storage::Within;
use testbed::hosted::{Cluster, Fixture, Platform};
use testbed::hosts::Hosts;

/// What the user calls the machine.
const NAME: &str = "own-9";

/// Its life: from nothing to a worker that a user has started by hand, and the end.
pub(crate) async fn run_lifecycle(fixture: &Fixture, hosts: &Hosts) -> Result<()> {
    let cluster = Cluster::on(fixture, "own", CapiTypes::Private, Platform::None(hosts));
    cluster.create(&[]).await?;
    let guest = cluster.comes_up().await?;
    cluster.brings(hosts, NAME).await?;
    cluster.has_workers(&guest, 1).await?;
    guest.runs_a_workload(fixture).await?;
    has_nothing_to_make_machines_with(&cluster).await?;
    // Only the user can end it.
    hosts.end(NAME);
    cluster.destroy().await
}

/// Its namespace has no object of Cluster API, of either side.
async fn has_nothing_to_make_machines_with(cluster: &Cluster<'_>) -> Result<()> {
    let stored = cluster.stored().await?;
    ensure!(stored == Within::default(), "there are {stored:?}");
    Ok(())
}
