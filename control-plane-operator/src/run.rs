//! `control-plane-operator run`: wires up the operator, and shuts it down in order.

use std::sync::Arc;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use control_plane_component::settings::Settings;
use http::HeaderValue;
use http::header::USER_AGENT;
use payload::args::RegistryArgs;
use payload::{Mirrors, Options, Overrides, Releases};
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs, Time};
use support::controller::Manager;
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown::{self, Drain, Signals};
use support::{client, fence, telemetry};

use crate::components;
use crate::error::{Failure, Usage};
use crate::hosted_control_plane::{self, Operator};
use crate::settings::SettingsArgs;

/// User agent, for the API server's audit log.
const PROGRAM: &str = concat!("control-plane-operator/", env!("CARGO_PKG_VERSION"));
/// Prefix of metric names.
const PREFIX: &str = "control_plane_operator";
/// Lease for leader election, in the namespace of the hosted control plane.
const LEASE: &str = "control-plane-operator-leader-elect";
/// Delay before giving up the lease after a failed start.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The flags of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace of the hosted control plane and of this operator.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of this pod, for leader election.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod_name: String,
    /// Release image of this operator: a hosted control plane with another release is not reconciled.
    #[arg(long, value_name = "IMAGE", env = "OPERATE_ON_RELEASE_IMAGE")]
    pub operate_on_release_image: String,
    /// Create the default security group of nodes on AWS, for which node pools wait.
    #[arg(long, env = "CREATES_AWS_SECURITY_GROUP", value_parser = FalseyValueParser::new())]
    pub creates_aws_security_group: bool,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Registry flags.
    #[command(flatten)]
    pub registries: RegistryArgs,
    /// How long running work may take to complete after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub drain_timeout: Time,
    /// Component flags.
    #[command(flatten, next_help_heading = "Components")]
    pub settings: SettingsArgs,
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

/// The state of the process, independent of leadership.
struct Process {
    namespace: String,
    operate_on: String,
    creates_security_group: bool,
    settings: Settings,
    releases: Releases,
    kube: kube::Config,
    health: Arc<Health>,
    controllers: Manager,
    lease: lease::Settings,
    leader_elect: bool,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    telemetry::init(&args.logging, &["control_plane_operator"]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut registry = Registry::with_prefix(PREFIX);
    let health = Health::new(&mut registry);
    let lease_metrics = lease::Metrics::new(&mut registry);
    let controllers = Manager::new(&mut registry, &health);
    let process = Process::new(&args, Arc::clone(&health), controllers).await?;
    let listener = admin::listen(args.metrics_addr)
        .await
        .map_err(|error| Usage {
            message: format!("failed to listen for probes: {error}: use another --metrics-addr"),
        })?;
    let admin = Admin {
        health: Arc::clone(&health),
        registry,
    };
    tokio::spawn(admin.serve(listener));
    let (signal, drain) = shutdown::channel();
    let mut work = std::pin::pin!(process.work(lease_metrics, drain));
    tokio::select! {
        ended = &mut work => return ended,
        () = signals.any() => {}
    }
    let _ending = health.check("shutdown", "shutting down");
    signal.begin();
    let Ok(ended) = tokio::time::timeout(args.drain_timeout.0, work).await else {
        tracing::warn!("Aborted running work after the drain timeout");
        return Ok(());
    };
    tracing::info!("Shutdown complete");
    ended
}

// === impl Process ===

impl Process {
    async fn new(args: &Args, health: Arc<Health>, controllers: Manager) -> Result<Self, Failure> {
        let settings = Settings {
            insecure_registries: args.registries.insecure_registries.clone(),
            ..args.settings.settings()?
        };
        let leader = &args.leader;
        let lease = leader.settings(&args.namespace, LEASE, &args.pod_name);
        if args.leader.leader_elect {
            lease.check().map_err(|problem| Usage {
                message: format!("{problem}: see --leader-elect-*"),
            })?;
        }
        Ok(Self {
            namespace: args.namespace.clone(),
            operate_on: args.operate_on_release_image.clone(),
            creates_security_group: args.creates_aws_security_group,
            releases: releases(args, &settings)?,
            settings,
            kube: client::config(&args.api_server).await?,
            health,
            controllers,
            lease,
            leader_elect: args.leader.leader_elect,
        })
    }

    /// Runs leader election until shutdown.
    async fn work(&self, metrics: lease::Metrics, drain: Drain) -> Result<(), Failure> {
        if !self.leader_elect {
            let (_term, claim) = Claim::alone(&self.lease);
            self.lead(claim, drain).await;
            return Ok(());
        }
        let mut kube = self.kube.clone();
        let agent = HeaderValue::from_static(PROGRAM);
        kube.headers.push((USER_AGENT, agent));
        let client = client::connect(&kube)?;
        let check = self.health.check("lease", "waiting to read the Lease");
        let elector = Elector::new(client, self.lease.clone(), metrics, check);
        let until = drain.clone();
        elector
            .run(until, |claim| self.lead(claim, drain.clone()))
            .await;
        Ok(())
    }

    /// Runs one term. It is aborted when the lease is lost.
    async fn lead(&self, claim: Claim, mut drain: Drain) {
        let operator = match self.operator(&claim).await {
            Ok(operator) => operator,
            Err(error) => {
                tracing::error!(error = chain(&error), "Failed to read the API groups");
                // Another replica may succeed.
                let _ = tokio::time::timeout(RETRY_INTERVAL, drain.begun()).await;
                return;
            }
        };
        let check = self.health.check("watch", "waiting for the initial lists");
        // It is large, and the elector's would be, too.
        Box::pin(hosted_control_plane::run(
            operator,
            &self.controllers,
            &check,
            drain,
        ))
        .await;
    }

    async fn operator(&self, claim: &Claim) -> kube::Result<Operator> {
        let client = fence::client(&self.kube, claim, PROGRAM)?;
        let groups = client.list_api_groups().await?;
        let mut settings = self.settings.clone();
        settings.served_groups = groups.groups.into_iter().map(|group| group.name).collect();
        Ok(Operator {
            settings,
            namespace: self.namespace.clone(),
            operate_on: self.operate_on.clone(),
            creates_security_group: self.creates_security_group,
            components: components::declared(),
            client,
            releases: self.releases.clone(),
        })
    }
}

fn releases(args: &Args, settings: &Settings) -> Result<Releases, Failure> {
    let options = args.registries.options().map_err(|error| Usage {
        message: error.to_string(),
    })?;
    let options = Options {
        mirrors: Mirrors::new(settings.openshift_img_overrides.grouped()),
        overrides: Overrides::new(settings.registry_overrides.0.clone()),
        ..options
    };
    Ok(Releases::new(options)?)
}
