//! The command line: one subcommand for each program. Each module defines its flags.
//!
//! To add a subcommand: a module with `Args` and `pub(crate) fn run(args: ...) -> Result<(), E>`, a variant here, and
//! an arm in `lib.rs`.

use clap::{Parser, Subcommand};

use crate::{
    availability_prober, etcd_defrag, feature_gates, file_exists, hosted_cluster_config,
    ignition_server, kas_bootstrap, konnectivity_https_proxy, konnectivity_socks5_proxy, render,
    resolve_dns, run, token_minter,
};

/// Operator of one hosted control plane, and helper programs of its components
#[derive(Debug, Parser)]
#[command(name = "control-plane-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Run in a pod, for the hosted control plane of its namespace:
    control-plane-operator run

  Render the objects of a hosted control plane locally, without a cluster:
    control-plane-operator render --hosted-control-plane hcp.yaml \\
      --release-images image-references --output out/";

/// The subcommand.
#[derive(Debug, Subcommand)]
#[non_exhaustive]
pub enum Command {
    /// Reconcile the hosted control plane of a namespace until SIGTERM or SIGINT.
    Run(Box<run::Args>),
    /// Write all objects of a hosted control plane as YAML files, without a cluster.
    Render(Box<render::Args>),
    /// Wait for the hosted API server and for prerequisites of a component.
    AvailabilityProber(Box<availability_prober::Args>),
    /// Wait until a DNS name resolves; optionally register this pod first.
    ResolveDns(Box<resolve_dns::Args>),
    /// Write a service account token of the hosted cluster to a file, and renew it.
    TokenMinter(Box<token_minter::Args>),
    /// Apply bootstrap manifests to a new API server, then wait for SIGTERM.
    KasBootstrap(Box<kas_bootstrap::Args>),
    /// Defragment etcd, one member at a time.
    EtcdDefragController(Box<etcd_defrag::Args>),
    /// Serve Ignition to new machines.
    IgnitionServer(Box<ignition_server::Args>),
    /// Reconcile resources in the hosted cluster, and report its status.
    HostedClusterConfigOperator(Box<hosted_cluster_config::Args>),
    /// Serve an HTTP proxy to the network of the hosted cluster.
    KonnectivityHttpsProxy(Box<konnectivity_https_proxy::Args>),
    /// Serve a SOCKS5 proxy to the network of the hosted cluster.
    KonnectivitySocks5Proxy(Box<konnectivity_socks5_proxy::Args>),
    /// Write the rendered FeatureGate to a ConfigMap (Job featuregate-generator).
    SyncFgConfigmap(Box<feature_gates::Args>),
    /// Exit with 0 if a file exists, for probes.
    FileExists(file_exists::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
