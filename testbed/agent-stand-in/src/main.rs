//! `agent-stand-in`: replaces Cluster API's infrastructure provider of platform Agent in a testbed.
//!
//! The provider's program cannot be had there. This one takes the same flags and keeps to the same contracts, so that
//! no other is visible in it: those of Cluster API on one side, and on the other those of the Agent service,
//! whose Agents it takes and gives back. It knows the standard groups of Cluster API and no others.
//!
//! ```text
//! AgentCluster ──> ClusterDeployment, AgentClusterInstall: where hosts find their configuration
//! AgentMachine ──> an Agent that is free and has the labels: bound, with the token of the machine's user data
//!              <── its name, its addresses, whether it is installed; its Node gets the provider's name
//! ```
//!
//! What it does not do: it looks once a second and watches nothing, it leads without a Lease, it has no metrics, and its
//! objects have no conditions.

mod agent;
mod bootstrap;
mod cluster;
mod health;
mod hook;
mod machine;
mod node;
mod objects;
mod provider;
mod selector;

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use provider::Provider;

/// The provider's flags.
#[derive(Debug, Parser)]
struct Args {
    /// Namespace of the control plane that it serves
    #[arg(long)]
    namespace: String,

    /// Namespace of the Agents
    #[arg(long)]
    agent_namespace: String,

    /// The address for probes, as in the provider: an address that may lack its host
    #[arg(long, default_value = ":8081")]
    health_probe_bind_address: String,

    /// Taken and not used
    #[arg(long)]
    metrics_bind_address: Option<String>,

    /// Taken and not used
    #[arg(long)]
    leader_elect: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<()> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow!("a provider of TLS is installed already"))?;
    let mut ended = signal(SignalKind::terminate()).context("cannot wait for a signal")?;
    let provider = Provider::new(args.namespace, args.agent_namespace).await?;
    tokio::select! {
        served = health::serve(&args.health_probe_bind_address) => served,
        never = provider.live() => never,
        _ = ended.recv() => Ok(()),
    }
}
