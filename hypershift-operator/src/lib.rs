//! The operator of hosted clusters and node pools.
//!
//! ```text
//! run ── lease ──> startup: scan, write missing ownership annotations ──> control: reconcile what is in scope
//!                                                                    └──> drift: look again, retire operator-legacy
//! ```
//!
//! Which operator reconciles a hosted cluster, and which cluster a namespace belongs to, is decided by the crate
//! `ownership`; `ownership-reader` reads what that is decided on.
//!
//! - `control_plane_namespace` claims the namespaces of control planes; code that writes into one needs the proof.
//! - `survey` evaluates all clusters at once.
//! - `startup` writes ownership annotations before anything is reconciled; `control` and `drift` go on with that.
//! - `hosted_cluster` is what happens to one of them; `platform` is what differs between infrastructures.
//! - [`capi`]: the kinds of Cluster API, on one side of the group table.
//! - `census` counts clusters and pools for metrics; `events` tells of what turns.
//! - `conversion`: renews the certificate of the conversion webhook.
//! - `migration`: moves clusters from standard to private types, one after the other.
//! - `legacy` removes operator-legacy when it is no longer needed.

pub mod args;
pub mod capi;
mod census;
mod config;
mod context;
mod control;
mod control_plane_namespace;
mod conversion;
mod drift;
pub mod error;
mod events;
mod fleet;
mod hosted_cluster;
mod legacy;
mod metrics;
mod migration;
mod node_pool;
mod pause;
mod platform;
mod run;
mod startup;
mod survey;
mod watches;

/// Runs a command line.
pub fn run(cli: &args::Cli) -> Result<(), error::Fatal> {
    match &cli.command {
        args::Command::Run(args) => run::run(args),
    }
}
