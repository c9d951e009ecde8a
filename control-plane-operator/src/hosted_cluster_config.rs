//! `control-plane-operator hosted-cluster-config-operator`: what a hosted cluster needs inside, and its status.
//!
//! ```text
//!   management cluster                     hosted cluster
//!   HostedControlPlane ──┐            ┌── Node, CertificateSigningRequest
//!   Machine, MachineSet ─┴── caches ──┴──┐
//!                               │ wakes   │
//!        passes: resources, signing, nodes, status, spot, in_place, cleanup
//! ```
//!
//! A pass looks at everything it is about, decides by pure code, and writes what differs. It runs when something has
//! changed, and now and then; a pass without a change writes nothing. One process acts, by a Lease.

mod cleanup;
mod context;
mod control_plane;
mod drive;
mod error;
mod in_place;
mod machines;
mod nodes;
mod resources;
mod signing;
mod spot;
mod status;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use control_plane_component::settings::Pairs;
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs};
use support::controller::Manager;
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::{fence, shutdown};

use crate::error::{Failure, Usage};
use crate::settings::CapiTypes;
use crate::tool;
use context::Context;

/// Lease that processes take turns by.
const LEASE: &str = "hosted-cluster-config-operator-leader-elect";
/// Who asks, in the API servers' audit logs.
const PROGRAM: &str = concat!("hosted-cluster-config-operator/", env!("CARGO_PKG_VERSION"));
/// How long a lease is kept that is of no use.
const PAUSE: Duration = Duration::from_secs(5);

/// The flags of `hosted-cluster-config-operator`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of the HostedControlPlane.
    #[arg(long, value_name = "NAME")]
    pub hosted_control_plane: String,
    /// Kubeconfig of the hosted cluster.
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: PathBuf,
    /// Authority of the control plane's certificates, PEM.
    #[arg(long, value_name = "FILE")]
    pub initial_ca_file: Option<PathBuf>,
    /// Authority of kubelets' serving certificates, PEM.
    #[arg(long, value_name = "FILE")]
    pub cluster_signer_ca_file: Option<PathBuf>,
    /// Where the nodes run.
    #[arg(long, value_name = "PLATFORM", default_value = "None")]
    pub platform_type: String,
    /// Names of the API groups that Cluster API's objects are stored in.
    #[arg(long, value_enum, env = "CAPI_TYPES", default_value_t = CapiTypes::Standard)]
    pub capi_types: CapiTypes,
    /// Whose request for a first certificate is granted: of everybody who has the bootstrap kubeconfig, or of those for
    /// whom there is a Machine.
    #[arg(long, value_enum, default_value_t = NodeClients::Everybody)]
    pub node_clients: NodeClients,
    /// Image of the daemon that upgrades nodes where they are. Without it the daemon has to be run by other means.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_MACHINE_CONFIG_OPERATOR")]
    pub machine_config_daemon_image: Option<String>,
    /// Which parts run. Comma-separated.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::value_variants().to_vec())]
    pub controllers: Vec<Part>,
    /// Release that this operator is part of: a hosted control plane of another one is left alone.
    #[arg(long, value_name = "IMAGE", env = "OPERATE_ON_RELEASE_IMAGE")]
    pub operate_on_release_image: Option<String>,
    /// Address for metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Address for probes: /healthz, /readyz.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":6060")]
    pub health_addr: Address,
    /// Taken for compatibility.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub enable_ci_debug_output: Option<bool>,
    /// Taken for compatibility: tunnels are made by components of OpenShift.
    #[arg(long, value_name = "HOST")]
    pub konnectivity_address: Option<String>,
    /// Taken for compatibility.
    #[arg(long, value_name = "PORT")]
    pub konnectivity_port: Option<u16>,
    /// Taken for compatibility: users of OpenShift log in by its components.
    #[arg(long, value_name = "HOST")]
    pub oauth_address: Option<String>,
    /// Taken for compatibility.
    #[arg(long, value_name = "PORT")]
    pub oauth_port: Option<u16>,
    /// Taken for compatibility: no image is read.
    #[arg(long, value_name = "SOURCE=MIRROR,...", default_value = "")]
    pub registry_overrides: Pairs,
    /// How the management cluster is reached.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Which of several processes acts.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// What is logged.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Whose request for a first certificate is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodeClients {
    /// Of everybody with the bootstrap kubeconfig.
    Everybody,
    /// Of those for whom there is a Machine.
    Machines,
}

/// A part of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Namespaces, rights, copies and endpoints inside the hosted cluster.
    Resources,
    /// Requests for certificates of kubelets.
    Signing,
    /// Labels and taints from Machines to Nodes.
    Node,
    /// What the HostedControlPlane says of the hosted cluster.
    Hcpstatus,
    /// Pools whose nodes are upgraded where they are.
    Inplaceupgrader,
    /// Machines that are about to be taken away.
    Spotremediation,
    /// Load balancers and volumes of a cluster that is being deleted.
    Cleanup,
}

/// Runs until a signal ends it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let lease = lease_settings(args);
    if args.leader.leader_elect {
        lease.check().map_err(|message| Usage { message })?;
    }
    tool::run(&args.logging, serve(args, lease))
}

fn lease_settings(args: &Args) -> lease::Settings {
    // A pod's host name is its own.
    let pod = std::env::var("HOSTNAME").unwrap_or_else(|_| "unnamed".to_owned());
    args.leader.settings(&args.namespace, LEASE, &pod)
}

async fn serve(args: &Args, lease: lease::Settings) -> Result<(), Failure> {
    let management = support::client::config(&args.api_server).await?;
    let mut registry = Registry::default();
    let health = Health::new(&mut registry);
    let lease_metrics = lease::Metrics::new(&mut registry);
    let manager = Manager::new(&mut registry, &health);
    for (address, registry) in [
        (args.metrics_addr, registry),
        (args.health_addr, Registry::default()),
    ] {
        let health = Arc::clone(&health);
        tokio::spawn(Admin { health, registry }.serve(admin::listen(address).await?));
    }
    if !args.leader.leader_elect {
        let (_term, claim) = Claim::alone(&lease);
        lead(args, &management, &health, &manager, claim).await;
        return Ok(());
    }
    let client = support::client::connect(management.clone())?;
    let check = health.check("lease", "the lease has not been read yet");
    let elector = Elector::new(client, lease, lease_metrics, check);
    // A signal drops everything where it stands: each write is whole by itself.
    let (_signal, drain) = shutdown::channel();
    elector
        .run(drain, |claim| {
            lead(args, &management, &health, &manager, claim)
        })
        .await;
    Ok(())
}

/// One term.
async fn lead(
    args: &Args,
    management: &kube::Config,
    health: &Arc<Health>,
    manager: &Manager,
    claim: Claim,
) {
    match clients(args, management, &claim).await {
        Ok((management, guest)) => Context::run(args, management, guest, health, manager).await,
        Err(error) => {
            let error = chain(error.as_ref());
            tracing::error!(error, "Failed to create a client");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn clients(
    args: &Args,
    management: &kube::Config,
    claim: &Claim,
) -> Result<(kube::Client, kube::Client), Failure> {
    let guest = ApiServerArgs {
        kubeconfig: Some(args.target_kubeconfig.clone()),
        context: None,
    };
    let guest = support::client::config(&guest).await?;
    Ok((
        fence::client(management.clone(), claim, PROGRAM)?,
        fence::client(guest, claim, PROGRAM)?,
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn the_command_line_of_the_component_is_taken() {
        let args = [
            "control-plane-operator",
            "hosted-cluster-config-operator",
            "--initial-ca-file=/etc/kubernetes/root-ca/ca.crt",
            "--cluster-signer-ca-file=/etc/kubernetes/cluster-signer-ca/ca.crt",
            "--target-kubeconfig=/etc/kubernetes/kubeconfig/kubeconfig",
            "--namespace",
            "clusters-dev",
            "--platform-type",
            "AWS",
            "--enable-ci-debug-output=false",
            "--hosted-control-plane=hcp",
            "--konnectivity-address=",
            "--konnectivity-port=0",
            "--oauth-address=",
            "--oauth-port=0",
            "--registry-overrides",
            "registry=override",
            "--capi-types=private",
        ];
        let Command::HostedClusterConfigOperator(args) = Cli::try_parse_from(args).unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!(args.controllers.len(), Part::value_variants().len());
        assert!(lease_settings(&args).check().is_ok());
    }
}
