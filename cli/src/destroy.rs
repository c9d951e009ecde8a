//! `destroy`: hosted clusters and node pools, with an account of what is still there.

mod cluster;
mod node_pool;

use clap::Subcommand;

pub(crate) use cluster::Cluster;
pub(crate) use node_pool::NodePool;

/// What can be destroyed.
#[derive(Debug, Subcommand)]
pub(crate) enum Destroy {
    /// Destroy a hosted cluster with its node pools and their machines
    #[command(subcommand, arg_required_else_help = true)]
    Cluster(Cluster),
    /// Destroy a node pool and its machines
    #[command(name = "nodepool")]
    NodePool(NodePool),
}

/// Runs `destroy`.
pub(crate) fn run(destroy: &Destroy) -> anyhow::Result<()> {
    match destroy {
        Destroy::Cluster(cluster) => cluster.run(),
        Destroy::NodePool(pool) => pool.run(),
    }
}
