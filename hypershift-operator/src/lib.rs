//! The operator of hosted clusters and node pools.
//!
//! ```text
//! run ── lease ──> startup: scan, write missing ownership annotations ──> control: reconcile what is in scope
//!                                                                    └──> resync: evaluate again, delete operator-legacy
//! ```
//!
//! Which operator reconciles a hosted cluster, and which cluster a namespace belongs to, is decided by the crate
//! `ownership`; `ownership-reader` reads what that is decided on.
//!
//! - `control_plane_namespace` claims the namespaces of control planes; code that writes into one needs the proof.
//! - `evaluation` evaluates all HostedClusters at once.
//! - `startup` writes ownership annotations before anything is reconciled; `control` and `resync` continue.
//! - `hosted_cluster` and `node_pool` reconcile one object; `platform` has what differs between infrastructures.
//! - [`capi`]: the Cluster API kinds of standard or private types.
//! - `cache` has what watches report, so that a reconcile in which nothing has changed makes no request.
//! - `fleet_metrics` counts clusters and pools for metrics; `events` sends Events for condition changes.
//! - `conversion`: renews the certificate of the conversion webhook.
//! - `private_link`: VPC endpoint services, private link services and service attachments, by which clusters reach their
//!   control plane privately.
//! - `etcd_backup`: HCPEtcdBackups of the technology preview: Jobs that store snapshots of etcd.
//! - `migration`: moves clusters from standard to private types, one after the other.
//! - `karpenter_operator`: the program in control planes with AutoNode, which has Karpenter make nodes; `karpenter_crds` has
//!   the kinds of Karpenter.
//! - `recover_etcd` and `sharedingress_config_generator`: programs beside the operator.
//! - `legacy` removes operator-legacy when it is no longer needed.

pub mod args;
mod cache;
mod canonical;
pub mod capi;
mod cluster_ref;
mod cluster_states;
mod config;
mod context;
mod control;
mod control_plane_namespace;
mod conversion;
mod desired;
pub mod error;
mod etcd_backup;
mod evaluation;
mod events;
mod facts;
mod fleet_metrics;
mod handover;
mod hosted_cluster;
mod in_flight;
mod karpenter_crds;
mod karpenter_operator;
mod kinds;
mod legacy;
mod management;
mod metrics;
mod migration;
mod names;
mod node_pool;
mod owner_condition;
mod pause;
mod platform;
mod private_link;
mod program;
mod recover_etcd;
mod resync;
mod run;
mod sharedingress_config_generator;
mod startup;
mod supported_versions;
mod watches;

/// Runs a command line.
pub fn run(cli: &args::Cli) -> Result<(), error::Fatal> {
    match &cli.command {
        args::Command::Run(args) => run::run(args),
        args::Command::KarpenterOperator(args) => karpenter_operator::run(args),
        args::Command::RecoverEtcd(args) => recover_etcd::run(args),
        args::Command::SharedingressConfigGenerator(args) => {
            sharedingress_config_generator::run(args)
        }
    }
}
