//! `create`: hosted clusters, their node pools, kubeconfigs for them, what they need in clouds, and their backups.

mod cluster;
mod kubeconfig;
mod label_selector;
mod node_pool;
mod release;
pub(crate) mod ssh_key;
pub(crate) mod text;

pub(crate) use cluster::{Capability, DELETED_WITH_CLUSTER, MADE_FOR};

use clap::Subcommand;

use cluster::Cluster;
use kubeconfig::Kubeconfig;
use node_pool::NodePool;

use crate::infra::{CreateBastion, CreateIam, CreateInfra, CreateOperatorRoles};
use crate::oadp;
use crate::program::Program;

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
    /// Create the network of a hosted cluster in a cloud
    #[command(subcommand, arg_required_else_help = true)]
    Infra(CreateInfra),
    /// Create the identities of a hosted cluster's components in a cloud
    #[command(subcommand, arg_required_else_help = true)]
    Iam(CreateIam),
    /// Create a host from which nodes of a hosted cluster are reached by SSH
    #[command(subcommand, arg_required_else_help = true)]
    Bastion(CreateBastion),
    /// Create the roles of the operator in a cloud
    #[command(subcommand, arg_required_else_help = true)]
    OperatorRoles(CreateOperatorRoles),
    /// Create a backup of a hosted cluster, which Velero of OADP makes
    OadpBackup(Box<oadp::BackupArgs>),
    /// Create a schedule by which Velero of OADP backs up a hosted cluster
    OadpSchedule(Box<oadp::ScheduleArgs>),
    /// Create a restore of a hosted cluster from a backup, which Velero of OADP does
    OadpRestore(Box<oadp::RestoreArgs>),
}

/// Runs `create`.
pub(crate) fn run(create: &Create, program: Program) -> anyhow::Result<()> {
    match create {
        Create::Cluster(cluster) => cluster.run(program),
        Create::NodePool(pool) => pool.run(),
        Create::Kubeconfig(kubeconfig) => kubeconfig.run(),
        Create::Infra(infra) => infra.run(),
        Create::Iam(iam) => iam.run(),
        Create::Bastion(bastion) => bastion.run(),
        Create::OperatorRoles(roles) => roles.run(),
        Create::OadpBackup(args) => args.run(),
        Create::OadpSchedule(args) => args.run(),
        Create::OadpRestore(args) => args.run(),
    }
}
