//! `destroy`: hosted clusters and node pools, with an account of what is still there.

mod cluster;
mod node_pool;

use clap::Subcommand;

pub(crate) use cluster::Cluster;
pub(crate) use node_pool::NodePool;

use crate::infra::{DestroyBastion, DestroyIam, DestroyInfra};

/// What can be destroyed.
#[derive(Debug, Subcommand)]
pub(crate) enum Destroy {
    /// Destroy a hosted cluster with its node pools and their machines
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = include_str!("destroy/cluster.txt")
    )]
    Cluster(Cluster),
    /// Destroy a node pool and its machines
    #[command(name = "nodepool", after_help = include_str!("destroy/node_pool.txt"))]
    NodePool(NodePool),
    /// Destroy the network of a hosted cluster in a cloud
    #[command(subcommand, arg_required_else_help = true)]
    Infra(DestroyInfra),
    /// Destroy the identities of a hosted cluster's components in a cloud
    #[command(subcommand, arg_required_else_help = true)]
    Iam(DestroyIam),
    /// Destroy the host from which nodes of a hosted cluster are reached by SSH
    #[command(subcommand, arg_required_else_help = true)]
    Bastion(DestroyBastion),
}

/// Runs `destroy`.
pub(crate) fn run(destroy: &Destroy) -> anyhow::Result<()> {
    match destroy {
        Destroy::Cluster(cluster) => cluster.run(),
        Destroy::NodePool(pool) => pool.run(),
        Destroy::Infra(infra) => infra.run(),
        Destroy::Iam(iam) => iam.run(),
        Destroy::Bastion(bastion) => bastion.run(),
    }
}
