//! The command line. Its help is the reference; `docs/operator.md` explains it.

use std::time::Duration;

use api::group::GroupPair;
use clap::{Args, Parser, Subcommand};
use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs, Time};

use crate::scope::Scope;

/// Runs hosted clusters on a management cluster.
#[derive(Debug, Parser)]
#[command(name = "hypershift-operator", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  In a pod, for hosted clusters on private Cluster API types:
    hypershift-operator run --scope private

  Beside it, for those that have not been migrated yet:
    hypershift-operator run --scope legacy

  On your machine, alone, with the current context of a kubeconfig:
    hypershift-operator run --scope private --namespace hypershift --pod-name me \\
      --leader-elect=false --kubeconfig ~/.kube/config --log-format text";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconcile hosted clusters, until SIGTERM or SIGINT.
    Run(Box<RunArgs>),
}

/// The flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which hosted clusters this operator acts on.
    #[arg(long, value_enum, env = "HYPERSHIFT_SCOPE")]
    pub scope: Scope,
    /// Namespace that the operator runs in: its Lease is there.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of the pod that the operator runs in: part of its identity.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod_name: String,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(
        long,
        value_name = "[IP]:PORT",
        env = "HYPERSHIFT_METRICS_ADDR",
        default_value = ":9000"
    )]
    pub metrics_addr: Address,
    /// Deployment that the private operator deletes from its namespace once no hosted cluster needs it.
    #[arg(long, value_name = "NAME", default_value = "operator-legacy")]
    pub legacy_deployment: String,
    /// How often evidence is looked at again, for changes that no watch tells of.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub resync_period: Time,
    /// Groups beyond the standard ones that can hold a cluster's objects. May be repeated.
    #[arg(
        long = "group",
        value_name = "STANDARD=PRIVATE",
        env = "CAPI_PROXY_GROUPS",
        value_delimiter = ','
    )]
    pub groups: Vec<GroupPair>,
    /// For work under way to end after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub drain_timeout: Time,
    /// How the API server is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Which of several replicas acts.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

// === impl RunArgs ===

impl RunArgs {
    /// How often evidence is looked at again.
    pub fn resync(&self) -> Duration {
        self.resync_period.0
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_of_a_pod_are_taken() {
        let args = [
            "hypershift-operator",
            "run",
            "--scope=legacy",
            "--namespace=hypershift",
            "--pod-name=operator-1",
            "--metrics-addr=127.0.0.1:0",
            "--leader-elect=false",
        ];
        let Command::Run(args) = Cli::try_parse_from(args).unwrap().command;
        assert_eq!(args.scope, Scope::Legacy);
        assert!(!args.leader.leader_elect);
        assert_eq!(args.resync(), Duration::from_secs(30));
    }
}
