//! `control-plane-operator run`: starts everything, and ends it in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control_plane_component::settings::Settings;
use http::HeaderValue;
use http::header::USER_AGENT;
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

/// Who asks, in the API server's audit log.
const PROGRAM: &str = concat!("control-plane-operator/", env!("CARGO_PKG_VERSION"));
/// First part of the names of metrics.
const PREFIX: &str = "control_plane_operator";
/// Lease of the operator: in the namespace of the hosted control plane.
const LEASE: &str = "control-plane-operator-leader-elect";
/// How long a lease is kept that is of no use.
const PAUSE: Duration = Duration::from_secs(5);

/// The flags of `run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace of the hosted control plane: this program runs there, too.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    pub namespace: String,
    /// Name of the pod that the operator runs in: part of its identity.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod_name: String,
    /// Release that this operator is part of: a hosted control plane of another one is left alone.
    #[arg(long, value_name = "IMAGE", env = "OPERATE_ON_RELEASE_IMAGE")]
    pub operate_on_release_image: String,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Directory in which releases that were read are kept for the next start. Without it they are read again.
    #[arg(long, value_name = "DIRECTORY", env = "RELEASE_CACHE")]
    pub release_cache: Option<PathBuf>,
    /// Registries that are spoken to without TLS, by host and port. For registries of a test.
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        env = "INSECURE_REGISTRIES",
        value_delimiter = ','
    )]
    pub insecure_registries: Vec<String>,
    /// File with PEM certificates of authorities that registries are trusted by, beside the usual ones.
    #[arg(long, value_name = "FILE", env = "REGISTRY_CA_BUNDLE")]
    pub registry_ca_bundle: Option<PathBuf>,
    /// For work under way to end after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub drain_timeout: Time,
    /// What is rendered.
    #[command(flatten, next_help_heading = "Components")]
    pub settings: SettingsArgs,
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

/// What a process has, whether it leads or not.
struct Process {
    namespace: String,
    operate_on: String,
    settings: Settings,
    releases: Releases,
    kube: kube::Config,
    health: Arc<Health>,
    controllers: Manager,
    lease: lease::Settings,
    leader_elect: bool,
}

/// Runs until a signal ends it.
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
            message: format!("cannot listen for probes: {error}: choose another --metrics-addr"),
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
    let _ending = health.check("shutdown", "the program is ending");
    signal.begin();
    let Ok(ended) = tokio::time::timeout(args.drain_timeout.0, work).await else {
        tracing::warn!("Work was cut: it did not end in time");
        return Ok(());
    };
    tracing::info!("Ended");
    ended
}

// === impl Process ===

impl Process {
    async fn new(args: &Args, health: Arc<Health>, controllers: Manager) -> Result<Self, Failure> {
        let settings = args.settings.settings()?;
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
            releases: releases(args, &settings)?,
            settings,
            kube: client::config(&args.api_server).await?,
            health,
            controllers,
            lease,
            leader_elect: args.leader.leader_elect,
        })
    }

    /// Leads whenever it may, until the process is to end.
    async fn work(&self, metrics: lease::Metrics, drain: Drain) -> Result<(), Failure> {
        if !self.leader_elect {
            let (_term, claim) = Claim::alone(&self.lease);
            self.lead(claim, drain).await;
            return Ok(());
        }
        let mut kube = self.kube.clone();
        let agent = HeaderValue::from_static(PROGRAM);
        kube.headers.push((USER_AGENT, agent));
        let client = client::connect(kube)?;
        let check = self
            .health
            .check("lease", "the lease has not been read yet");
        let elector = Elector::new(client, self.lease.clone(), metrics, check);
        let until = drain.clone();
        elector
            .run(until, |claim| self.lead(claim, drain.clone()))
            .await;
        Ok(())
    }

    /// One term. It is dropped where it stands when the lease is lost.
    async fn lead(&self, claim: Claim, mut drain: Drain) {
        let operator = match self.operator(&claim).await {
            Ok(operator) => operator,
            Err(error) => {
                tracing::error!(error = chain(&error), "Failed to read the API groups");
                // Another replica may succeed.
                let _ = tokio::time::timeout(PAUSE, drain.begun()).await;
                return;
            }
        };
        let check = self.health.check("watch", "objects are not watched yet");
        hosted_control_plane::run(operator, &self.controllers, &check, drain).await;
    }

    async fn operator(&self, claim: &Claim) -> kube::Result<Operator> {
        let client = fence::client(self.kube.clone(), claim, PROGRAM)?;
        let groups = client.list_api_groups().await?;
        let mut settings = self.settings.clone();
        settings.served_groups = groups.groups.into_iter().map(|group| group.name).collect();
        Ok(Operator {
            settings,
            namespace: self.namespace.clone(),
            operate_on: self.operate_on.clone(),
            components: components::declared(),
            client,
            releases: self.releases.clone(),
        })
    }
}

fn releases(args: &Args, settings: &Settings) -> Result<Releases, Failure> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| Usage {
            message: format!(
                "--registry-ca-bundle {} cannot be read: {error}",
                path.display()
            ),
        })
    };
    let options = Options {
        plain_http: args.insecure_registries.iter().cloned().collect(),
        ca_bundle: args.registry_ca_bundle.as_ref().map(read).transpose()?,
        directory: args.release_cache.clone(),
        mirrors: Mirrors::new(settings.openshift_img_overrides.grouped()),
        overrides: Overrides::new(settings.registry_overrides.0.clone()),
        ..Options::default()
    };
    Ok(Releases::new(options)?)
}
