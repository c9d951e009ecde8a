//! A cluster whose user brings the machines.

use anyhow::{Result, ensure};
use api::group::Side;
use testbed::hosted::{Cluster, Fixture, Platform};
use testbed::hosts::Hosts;
use testbed::sides::Within;

/// What the user calls the machine.
const NAME: &str = "own-9";

/// Its life: from nothing to a worker that a user has started by hand, and the end.
pub(crate) async fn lives(fixture: &Fixture, hosts: &Hosts) -> Result<()> {
    let cluster = Cluster::on(fixture, "own", Side::Private, Platform::None(hosts));
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
