//! `control-plane-operator hosted-cluster-config-operator`: reconciles resources in the hosted cluster, and its status.
//!
//! ```text
//!   management cluster                     hosted cluster
//!   HostedControlPlane ──┐            ┌── Node, CertificateSigningRequest
//!   Machine, MachineSet ─┴── caches ──┴──┐
//!                               │ trigger │
//!   controllers: resources, signing, nodes, endpoint_slices, status, spot, in_place, cleanup,
//!                service_authorities, webhook_validation, recovery, reencryption
//! ```
//!
//! A pass reads the objects from caches, decides in pure code, and writes what differs. It runs after changes and
//! periodically; a pass without a change writes nothing. One process acts, elected by a Lease.

mod cleanup;
mod context;
mod control_plane;
mod controller;
mod endpoint_slices;
mod error;
mod in_place;
mod infra;
mod machines;
mod metrics;
mod nodes;
mod passthrough;
mod recovery;
mod reencryption;
pub mod resources;
mod service_authorities;
mod signing;
mod spot;
mod status;
mod webhook_validation;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::group::CapiTypes;
use clap::ValueEnum;
use control_plane_component::settings::Pairs;
use payload::args::{RegistryArgs, from_variables};
use payload::{Mirrors, Options, Overrides, Releases};
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs};
use support::controller::Manager;
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::{fence, shutdown};

use crate::error::{Failure, Usage};
use crate::{settings, tool};
use context::Context;
use metrics::Metrics;

/// Lease for leader election.
const LEASE: &str = "hosted-cluster-config-operator-leader-elect";
/// User agent, for the API servers' audit logs.
const PROGRAM: &str = concat!("hosted-cluster-config-operator/", env!("CARGO_PKG_VERSION"));
/// Delay before giving up the lease after a failed start.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

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
    /// File with the root CA of the control plane, PEM.
    #[arg(long, value_name = "FILE")]
    pub initial_ca_file: Option<PathBuf>,
    /// File with the CA of kubelet serving certificates, PEM.
    #[arg(long, value_name = "FILE")]
    pub cluster_signer_ca_file: Option<PathBuf>,
    /// Platform of the nodes.
    #[arg(long, value_name = "PLATFORM", default_value = "None")]
    pub platform_type: String,
    /// API groups of Cluster API objects: private or standard.
    #[arg(
        long,
        env = "CAPI_TYPES",
        default_value_t = CapiTypes::Standard,
        value_parser = settings::capi_types()
    )]
    pub capi_types: CapiTypes,
    /// Which nodes get their first client certificate: all that have the bootstrap kubeconfig (everybody), or only
    /// those with a Machine (machines).
    #[arg(long, value_enum, default_value_t = NodeClients::Everybody)]
    pub node_clients: NodeClients,
    /// Image of the machine-config-daemon for in-place upgrades. If it is not set, the daemon is not started.
    #[arg(long, value_name = "IMAGE", env = "IMAGE_MACHINE_CONFIG_OPERATOR")]
    pub machine_config_daemon_image: Option<String>,
    /// Controllers to run. Comma-separated.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ControllerName::value_variants().to_vec())]
    pub controllers: Vec<ControllerName>,
    /// Release image of this operator: a hosted control plane with another release is not reconciled.
    #[arg(long, value_name = "IMAGE", env = "OPERATE_ON_RELEASE_IMAGE")]
    pub operate_on_release_image: Option<String>,
    /// Address for metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Address for probes: /healthz, /readyz.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":6060")]
    pub health_addr: Address,
    /// Accepted for compatibility; ignored.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub enable_ci_debug_output: Option<bool>,
    /// Kubeconfig of the cluster that runs the virtual machines on KubeVirt, if it is another one.
    #[arg(long, value_name = "FILE")]
    pub kubevirt_infra_kubeconfig: Option<PathBuf>,
    /// Host of the konnectivity server for agents in the hosted cluster.
    #[arg(long, value_name = "HOST")]
    pub konnectivity_address: Option<String>,
    /// Port of the konnectivity server.
    #[arg(long, value_name = "PORT")]
    pub konnectivity_port: Option<u16>,
    /// Host of the OAuth server.
    #[arg(long, value_name = "HOST")]
    pub oauth_address: Option<String>,
    /// Port of the OAuth server.
    #[arg(long, value_name = "PORT")]
    pub oauth_port: Option<u16>,
    /// Registry overrides for the release. Comma-separated.
    #[arg(long, value_name = "SOURCE=MIRROR,...", default_value = "")]
    pub registry_overrides: Pairs,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Leader election flags.
    #[command(flatten, next_help_heading = "Leader election")]
    pub leader: LeaderArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Which nodes get their first client certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NodeClients {
    /// All nodes with the bootstrap kubeconfig.
    Everybody,
    /// Nodes that have a Machine.
    Machines,
}

/// A controller of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ControllerName {
    /// Namespaces, RBAC, copied objects and endpoints in the hosted cluster.
    Resources,
    /// `CertificateSigningRequests` of kubelets.
    Signing,
    /// Labels and taints from Machines to Nodes.
    Node,
    /// Ingress of the hosted cluster, and endpoints of its Services, where its machines are virtual ones.
    Machine,
    /// Hosted cluster status in the HostedControlPlane.
    Hcpstatus,
    /// In-place upgrades, and the drains that they request.
    #[value(alias = "drainer")]
    Inplaceupgrader,
    /// Interrupted spot instances.
    Spotremediation,
    /// Cloud resources of a deleted cluster.
    Cleanup,
    /// Authorities of the hosted cluster that the control plane trusts.
    ControllerManagerCa,
    /// Webhook configurations that lead into the control plane.
    WebhookValidation,
    /// Monitoring after a restore from a backup.
    Recovery,
    /// Stored objects after a change of the encryption key.
    Reencryption,
}

// === impl Args ===

impl Args {
    /// The controllers to run: each of them once, as a controller may have several names.
    fn controllers(&self) -> Vec<ControllerName> {
        let mut all = Vec::new();
        for controller in &self.controllers {
            if !all.contains(controller) {
                all.push(*controller);
            }
        }
        all
    }
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let lease = lease_settings(args);
    if args.leader.leader_elect {
        lease.check().map_err(|message| Usage { message })?;
    }
    tool::run(&args.logging, serve(args, lease))
}

fn lease_settings(args: &Args) -> lease::Settings {
    // The host name of a pod is unique.
    let pod = std::env::var("HOSTNAME").unwrap_or_else(|_| "unnamed".to_owned());
    args.leader.settings(&args.namespace, LEASE, &pod)
}

/// What all terms of leader election share.
struct Process {
    releases: Releases,
    health: Arc<Health>,
    manager: Manager,
    metrics: Metrics,
}

async fn serve(args: &Args, lease: lease::Settings) -> Result<(), Failure> {
    let management = support::client::config(&args.api_server).await?;
    let releases = releases(args)?;
    let mut registry = Registry::default();
    let health = Health::new(&mut registry);
    let lease_metrics = lease::Metrics::new(&mut registry);
    let process = Process {
        releases,
        manager: Manager::new(&mut registry, &health),
        health: Arc::clone(&health),
        metrics: Metrics::new(&mut registry),
    };
    for (address, registry) in [
        (args.metrics_addr, registry),
        (args.health_addr, Registry::default()),
    ] {
        let health = Arc::clone(&health);
        tokio::spawn(Admin { health, registry }.serve(admin::listen(address).await?));
    }
    if !args.leader.leader_elect {
        let (_term, claim) = Claim::alone(&lease);
        lead(args, &management, &process, claim).await;
        return Ok(());
    }
    let client = support::client::connect(&management)?;
    let check = health.check("lease", "waiting to read the Lease");
    let elector = Elector::new(client, lease, lease_metrics, check);
    // A signal aborts all work, which is safe because each write is atomic.
    let (_signal, drain) = shutdown::channel();
    elector
        .run(drain, |claim| lead(args, &management, &process, claim))
        .await;
    Ok(())
}

/// Runs one leader election term.
async fn lead(args: &Args, management: &kube::Config, process: &Process, claim: Claim) {
    match clients(args, management, &claim).await {
        Ok(clients) => Context::run(args, clients, process).await,
        Err(error) => {
            let error = chain(error.as_ref());
            tracing::error!(error, "Failed to create a client");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

/// Reads releases as the control-plane-operator does: registries are configured by environment variables.
fn releases(args: &Args) -> Result<Releases, Failure> {
    let usage = |message: String| Usage { message };
    let variables = std::env::vars().collect();
    let registries: RegistryArgs =
        from_variables(&variables).map_err(|error| usage(error.to_string()))?;
    let options = registries
        .options()
        .map_err(|error| usage(error.to_string()))?;
    let mirrors = variables.get("OPENSHIFT_IMG_OVERRIDES");
    let mirrors: Pairs = mirrors
        .map_or(Ok(Pairs::default()), |text| text.parse())
        .map_err(usage)?;
    let options = Options {
        mirrors: Mirrors::new(mirrors.grouped()),
        overrides: Overrides::new(args.registry_overrides.0.clone()),
        ..options
    };
    Ok(Releases::new(options)?)
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
        fence::client(management, claim, PROGRAM)?,
        fence::client(&guest, claim, PROGRAM)?,
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn component_command_line_is_accepted() {
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
        assert_eq!(
            args.controllers.len(),
            ControllerName::value_variants().len()
        );
        assert!(lease_settings(&args).check().is_ok());
    }

    #[test]
    fn each_controller_runs_once() {
        use ControllerName::{ControllerManagerCa, Hcpstatus, Inplaceupgrader, Resources};
        let line = |controllers: &str| {
            let line = format!(
                "control-plane-operator hosted-cluster-config-operator --namespace=a \
                 --target-kubeconfig=a --hosted-control-plane=a --controllers={controllers}"
            );
            let command = Cli::try_parse_from(line.split(' ')).unwrap().command;
            let Command::HostedClusterConfigOperator(args) = command else {
                panic!("another command");
            };
            args.controllers()
        };
        let on_ibm_cloud = "controller-manager-ca,resources,inplaceupgrader,drainer,hcpstatus";
        let expected = [ControllerManagerCa, Resources, Inplaceupgrader, Hcpstatus];
        assert_eq!(line(on_ibm_cloud), expected);
        assert_eq!(line("drainer"), [Inplaceupgrader]);
        assert_eq!(line("hcpstatus,resources"), [Hcpstatus, Resources]);
    }
}
