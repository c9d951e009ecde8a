//! `control-plane-operator control-plane-pki-operator`: break-glass certificates of one hosted cluster.
//!
//! ```text
//!              ┌─ rotation ────> signer, bundle and client certificate of each class ──> total-client-ca
//!  cache ──────┼─ requests ────> approves and signs CertificateSigningRequests
//!  (watches)   └─ revocation ──> steps of CertificateRevocationRequests ──> asks every API server
//! ```
//!
//! CPO adds `total-client-ca` to the client CA bundle of the API servers, which load it without a restart.
//! `rotation`, `request` and `revocation` decide and are pure; `controllers` read from the cache and write with
//! preconditions, so a decision from an old cache is never carried out.

mod cache;
mod class;
mod controllers;
#[cfg(test)]
mod fixtures;
mod issue;
mod objects;
mod probe;
mod request;
mod revocation;
mod rotation;
mod serving;
pub(crate) mod x509;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use prometheus_client::registry::Registry;
use support::admin::Admin;
use support::apply::owner;
use support::args::{ApiServerArgs, LeaderArgs, LoggingArgs};
use support::controller::{DEADLINE, Manager, Settings};
use support::error::chain;
use support::health::Health;
use support::lease::{self, Claim, Elector};
use support::shutdown::Drain;
use support::{client, fence};
use tokio::net::TcpListener;

use crate::components::go_duration;
use crate::error::{Failure, Usage};
use crate::{https, tool};
use cache::Cache;
use controllers::{Context, requests, revocation as revocations, rotation as rotations};
use rotation::Lifetimes;
use serving::{Config, Endpoints, Watched};

/// The file name under which the component starts this program, with the arguments of its own program.
pub(crate) const PROGRAM: &str = "control-plane-pki-operator";
/// User agent, for the API server's audit log.
const AGENT: &str = concat!("control-plane-pki-operator/", env!("CARGO_PKG_VERSION"));
const PREFIX: &str = "control_plane_pki_operator";
const LEASE: &str = "control-plane-pki-operator-lock";
/// The regular length of the day in lifetimes, and the longest.
const DAY: Duration = Duration::from_hours(24);
/// Delay before giving up the lease after a failed start.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The flags of `control-plane-pki-operator`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommand of `control-plane-pki-operator`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Rotate the signers of break-glass certificates, sign and revoke certificates.
    Operator(Box<OperatorArgs>),
}

/// The flags of `control-plane-pki-operator operator`.
#[derive(Debug, Clone, clap::Args)]
pub struct OperatorArgs {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "HOSTED_CONTROL_PLANE_NAMESPACE")]
    pub namespace: String,
    /// Name of the HostedControlPlane.
    #[arg(long, value_name = "NAME", env = "HOSTED_CONTROL_PLANE_NAME")]
    pub hosted_control_plane_name: String,
    /// Name of this pod, for leader election.
    #[arg(
        long,
        value_name = "NAME",
        env = "POD_NAME",
        default_value = "control-plane-pki-operator"
    )]
    pub pod_name: String,
    /// File with the serving configuration. Without it, neither health nor metrics are served.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Files whose change ends the program, so that it is started again.
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    pub terminate_on_files: Vec<PathBuf>,
    /// Length of a day in lifetimes of certificates, at most 24h; 0s is 24h. Shorter days are for tests.
    #[arg(long, value_name = "TIME", env = "CERT_ROTATION_SCALE", default_value = "24h", value_parser = scale)]
    pub cert_rotation_scale: Duration,
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
    args: OperatorArgs,
    kube: kube::Config,
    health: Arc<Health>,
    manager: Manager,
    lease: lease::Settings,
}

fn scale(text: &str) -> Result<Duration, String> {
    match go_duration::parse(text) {
        Some(Duration::ZERO) => Ok(DAY),
        // Certificates have whole seconds: in shorter days, lifetimes would round to nothing.
        Some(scale) if (Duration::from_mins(1)..=DAY).contains(&scale) => Ok(scale),
        _ => Err("expected a duration from 1m to 24h, or 0s for 24h (for example 30m)".to_owned()),
    }
}

/// Runs until SIGTERM or SIGINT, or until a watched file changes.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Command::Operator(args) = &args.command;
    let config = args.config.as_deref().map(Config::read).transpose()?;
    let serving = match config {
        None => None,
        Some(config) => Some((config.address()?, config.tls()?)),
    };
    let lease = args.leader.settings(&args.namespace, LEASE, &args.pod_name);
    if args.leader.leader_elect {
        lease.check().map_err(|problem| Usage {
            message: format!("{problem}: see --leader-elect-*"),
        })?;
    }
    tool::serve(&args.logging, async |drain| {
        let watched = Watched::new(&args.terminate_on_files);
        let mut registry = Registry::with_prefix(PREFIX);
        let health = Health::new(&mut registry);
        let metrics = lease::Metrics::new(&mut registry);
        let process = Process {
            manager: Manager::new(&mut registry, &health),
            kube: client::config(&args.api_server).await?,
            args: (**args).clone(),
            health: Arc::clone(&health),
            lease,
        };
        if let Some((address, tls)) = serving {
            let listener = TcpListener::bind(address).await.map_err(|error| Usage {
                message: format!(
                    "failed to listen on {address}: {error}: change servingInfo.bindAddress"
                ),
            })?;
            let admin = Endpoints(Admin { health, registry });
            tokio::spawn(https::serve(listener, tls, Arc::new(admin), drain.clone()));
        }
        tokio::select! {
            ended = process.work(metrics, drain) => ended,
            file = watched.changed() => {
                tracing::info!(file = %file.display(), "Ending, because a file has changed");
                Ok(())
            }
        }
    })
}

// === impl Process ===

impl Process {
    /// Runs leader election until shutdown.
    async fn work(&self, metrics: lease::Metrics, drain: Drain) -> Result<(), Failure> {
        if !self.args.leader.leader_elect {
            let (_term, claim) = Claim::alone(&self.lease);
            self.lead(claim, drain).await;
            return Ok(());
        }
        let mut kube = self.kube.clone();
        kube.headers
            .push((USER_AGENT, HeaderValue::from_static(AGENT)));
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
        match self.start(&claim).await {
            Ok((client, hcp, owner)) => self.control(client, &hcp, owner, drain).await,
            Err(error) => {
                tracing::error!(error = chain(error.as_ref()), "Failed to start");
                // Another replica may succeed.
                let _ = tokio::time::timeout(RETRY_INTERVAL, drain.begun()).await;
            }
        }
    }

    async fn start(
        &self,
        claim: &Claim,
    ) -> Result<(kube::Client, HostedControlPlane, OwnerReference), Failure> {
        let client = fence::client(&self.kube, claim, AGENT)?;
        let name = &self.args.hosted_control_plane_name;
        let api: Api<HostedControlPlane> = Api::namespaced(client.clone(), &self.args.namespace);
        let hcp = api.get(name).await?;
        let owner = owner(&hcp).ok_or("the HostedControlPlane has no UID")?;
        Ok((client, hcp, owner))
    }

    /// Runs the watches and the controllers. It ends with one of them.
    async fn control(
        &self,
        client: kube::Client,
        hcp: &HostedControlPlane,
        owner: OwnerReference,
        drain: Drain,
    ) {
        let (cache, watches) = cache::new();
        let namespace = &self.args.namespace;
        let context = Context {
            client: client.clone(),
            namespace: namespace.clone(),
            owner,
            lifetimes: Lifetimes::scaled(self.args.cert_rotation_scale),
            cache: cache.clone(),
        };
        tokio::select! {
            () = watches.run(&client, namespace) => {}
            () = self.report_readiness(&cache) => {}
            () = self.controllers(context, hcp, &drain) => {}
        }
    }

    /// Passes the check once all initial lists are complete. Never completes.
    async fn report_readiness(&self, cache: &Cache) {
        let check = self.health.check("watch", "waiting for the initial lists");
        cache.wait_until_synced().await;
        check.pass();
        std::future::pending().await
    }

    async fn controllers(&self, context: Context, hcp: &HostedControlPlane, drain: &Drain) {
        let (manager, cache) = (&self.manager, &context.cache);
        let ready = || cache.wait_until_synced();
        let rotation = rotations::Controller::new(context.clone(), hcp);
        let requests = requests::Controller::new(context.clone());
        let revocation = revocations::Controller(context.clone());
        let rotation = manager.run(
            settings("certificaterotation", "HostedControlPlane"),
            &rotation,
            cache.requests(|| rotations::keys(&context.namespace)),
            ready(),
            drain.clone(),
        );
        let requests = manager.run(
            settings(
                "certificatesigningrequestapproval",
                "CertificateSigningRequestApproval",
            ),
            &requests,
            cache.requests(|| cache.approval_keys()),
            ready(),
            drain.clone(),
        );
        let revocation = manager.run(
            settings(
                "certificaterevocationrequest",
                "CertificateRevocationRequest",
            ),
            &revocation,
            cache.requests(|| cache.revocation_keys()),
            ready(),
            drain.clone(),
        );
        futures::future::join3(rotation, requests, revocation).await;
    }
}

fn settings(controller: &'static str, kind: &'static str) -> Settings {
    Settings {
        controller,
        kind,
        concurrency: 1,
        debounce: Duration::from_millis(50),
        deadline: DEADLINE,
    }
}

#[cfg(test)]
mod tests;
