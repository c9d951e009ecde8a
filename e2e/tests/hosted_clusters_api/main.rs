//! Hosted clusters and node pools on a real API server, without nodes: what the operators make of them, with the rights
//! that an installation grants. No pod runs; the test writes the status of control planes.

mod adopted;
mod agents_shared;
mod auto_node;
mod aws_from_nothing;
mod azure;
pub(crate) mod azure_from_nothing;
pub(crate) mod bastion;
pub(crate) mod cluster;
mod collision;
pub(crate) mod command;
pub(crate) mod control_plane;
pub(crate) mod expect;
pub(crate) mod fixture;
pub(crate) mod from_nothing;
mod from_zero;
pub(crate) mod further_pool;
mod old_releases;
pub(crate) mod other_platforms;
mod poison;
mod pool;
mod power_vs;
pub(crate) mod power_vs_from_nothing;
mod private_aws;
pub(crate) mod refusals;
mod release_stream;
mod slow_registries;
mod stages;
mod unreadable;
mod virtual_machines;

use anyhow::Result;
use testbed::progress::Progress;
use testbed::testbed::Testbed;

/// One cluster on either side, from its creation to its end, and one that is made by the command line.
/// Checks O04, O05, O06 and O07.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosted_clusters_are_created_reconciled_and_deleted() -> Result<()> {
    let mut testbed = Testbed::start("hosted-clusters", Progress::detect()).await?;
    let outcome = stages::run(&mut testbed).await;
    testbed.finish(outcome)
}

/// A populated control plane namespace of another cluster outlives whatever is done with the one that collides (T01).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_namespace_of_another_cluster_is_unchanged() -> Result<()> {
    let mut testbed = Testbed::start("collision", Progress::detect()).await?;
    let outcome = collision::run(&mut testbed).await;
    testbed.finish(outcome)
}
