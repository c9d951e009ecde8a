//! The operator of hosted clusters and node pools.
//!
//! ```text
//! run ── lease ──> startup: scan, write the marks that are due ──> control: reconcile what is in scope
//!                                                             └──> drift: look again, retire operator-legacy
//! ```
//!
//! - [`scope`]: which operator may write to a hosted cluster, and what one operator does about it: pure.
//! - [`control_plane_namespace`]: whose the namespace of a control plane is; what writes into one has to show that.
//! - `evidence` reads which API groups hold a cluster's objects; `survey` does so for all clusters at once.
//! - `startup` writes the marks before anything is reconciled; `control` and `drift` keep at it.
//! - `hosted_cluster` is what happens to one of them; `platform` is what differs between infrastructures.
//! - [`capi`]: the kinds of Cluster API, on one side of the group table.
//! - `census` counts clusters and pools for metrics; `events` tells of what turns.
//! - `conversion`: renews the certificate of the conversion webhook.
//! - `migration`: moves clusters from standard to private types, one after the other.
//! - [`foresight`]: whether a release can be on private types, for those who plan.
//! - [`legacy`]: whether operator-legacy is needed any more, and its removal.

pub mod args;
pub mod capi;
mod census;
mod config;
mod context;
mod control;
pub mod control_plane_namespace;
mod conversion;
mod drift;
pub mod error;
mod events;
pub mod evidence;
mod fleet;
pub mod foresight;
mod hosted_cluster;
pub mod legacy;
mod metrics;
mod migration;
mod node_pool;
mod pause;
mod platform;
mod run;
pub mod scope;
mod startup;
mod survey;
mod watches;

/// Runs a command line.
pub fn run(cli: &args::Cli) -> Result<(), error::Fatal> {
    match &cli.command {
        args::Command::Run(args) => run::run(args),
    }
}
