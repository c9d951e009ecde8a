//! `create`: hosted clusters, their node pools, and kubeconfigs for them.

mod cluster;
mod kubeconfig;
mod node_pool;
mod text;

pub(crate) use cluster::{DELETED_WITH_CLUSTER, MADE_FOR};

use clap::Subcommand;

use cluster::Cluster;
use kubeconfig::Kubeconfig;
use node_pool::NodePool;

/// What can be created.
#[derive(Debug, Subcommand)]
pub(crate) enum Create {
    /// Create a hosted cluster, and node pools for it
    #[command(subcommand, arg_required_else_help = true)]
    Cluster(Cluster),
    /// Create a node pool for a hosted cluster that exists
    #[command(subcommand, name = "nodepool", arg_required_else_help = true)]
    NodePool(NodePool),
    /// Print a kubeconfig of hosted clusters
    Kubeconfig(Kubeconfig),
}

/// Runs `create`.
pub(crate) fn run(create: &Create) -> anyhow::Result<()> {
    match create {
        Create::Cluster(cluster) => cluster.run(),
        Create::NodePool(pool) => pool.run(),
        Create::Kubeconfig(kubeconfig) => kubeconfig.run(),
    }
}
