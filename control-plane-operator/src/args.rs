//! The command line: one subcommand a program. Each module has the flags of its own.
//!
//! To add one: a module with `Args` and `pub(crate) fn run(args: ...) -> Result<(), E>`, a variant here, and an arm in
//! `lib.rs`.

use clap::{Parser, Subcommand};

use crate::{
    availability_prober, etcd_defrag, feature_gates, file_exists, hosted_cluster_config,
    ignition_server, kas_bootstrap, render, resolve_dns, run, token_minter,
};

/// Runs one hosted control plane, and helps its components.
#[derive(Debug, Parser)]
#[command(name = "control-plane-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, for the hosted control plane of its namespace:
    control-plane-operator run

  On your machine, to see what would be made, without a cluster:
    control-plane-operator render --hosted-control-plane hcp.yaml \\
      --release-images image-references --output out/";

/// What to do.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Reconcile the hosted control plane of a namespace, until SIGTERM or SIGINT.
    Run(Box<run::Args>),
    /// Write all objects of a hosted control plane as YAML files, without a cluster.
    Render(Box<render::Args>),
    /// Wait for the hosted API server, and for what a component needs of it.
    AvailabilityProber(Box<availability_prober::Args>),
    /// Wait until a name can be resolved; write it first, if asked to.
    ResolveDns(Box<resolve_dns::Args>),
    /// Keep a token of a service account of the hosted cluster in a file.
    TokenMinter(Box<token_minter::Args>),
    /// Give a fresh API server what must be there before anything else, then wait for the end.
    KasBootstrap(Box<kas_bootstrap::Args>),
    /// Defragment etcd, one member at a time.
    EtcdDefragController(Box<etcd_defrag::Args>),
    /// Serve Ignition to new machines.
    IgnitionServer(Box<ignition_server::Args>),
    /// Apply what a hosted cluster needs inside, and report its status.
    HostedClusterConfigOperator(Box<hosted_cluster_config::Args>),
    /// Hand on which features the release has, as the Job featuregate-generator does.
    SyncFgConfigmap(Box<feature_gates::Args>),
    /// Report by the exit code whether a file exists, for probes.
    FileExists(file_exists::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
