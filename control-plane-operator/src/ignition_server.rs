//! `control-plane-operator ignition-server`: serves Ignition to new machines.
//!
//! ```text
//! Secret of a token ──> reconcile ──> payload ──> cache ──> HTTPS ──> machine with the token
//!        ^                  |                                 |
//!        └── status, token rotation, in-place payload          └──> annotation, Event
//! ```
//!
//! Several replicas run at once: writes have a resource version precondition, so that only one of them succeeds.

mod admission;
mod cache;
mod metrics;
mod payload;
mod payload_programs;
mod reached;
mod read;
mod reconcile;
mod request;
mod serve;
mod token;

use std::path::PathBuf;
use std::sync::Arc;

use ::payload::args::RegistryArgs;
use ::payload::{Mirrors, Options, Overrides, Releases};
use control_plane_component::settings::Pairs;
use prometheus_client::registry::Registry;
use support::admin::{self, Admin};
use support::args::{Address, ApiServerArgs, LoggingArgs};
use support::controller::Manager;
use support::health::Health;
use tokio::sync::mpsc;

use crate::error::{Failure, Usage};
use crate::tool;
use admission::Admission;
use cache::Cache;
use metrics::Metrics;
use payload_programs::{Programs, State};
use reconcile::Context;
use serve::Server;

/// Capacity of the queue of requests to record.
const QUEUE_CAPACITY: usize = 256;

/// The flags of `ignition-server`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace of the hosted control plane.
    #[arg(long, value_name = "NAME", env = "MY_NAMESPACE")]
    pub namespace: String,
    /// Name of the HostedControlPlane [default: the only one in the namespace]
    #[arg(long, value_name = "NAME")]
    pub hosted_control_plane: Option<String>,
    /// Address to serve Ignition on.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":9090")]
    pub addr: Address,
    /// File with the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/run/secrets/ignition/tls.crt"
    )]
    pub cert_file: PathBuf,
    /// File with the key of the serving certificate, PEM.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/run/secrets/ignition/tls.key"
    )]
    pub key_file: PathBuf,
    /// Address for probes and metrics: /livez, /readyz, /metrics.
    #[arg(long, value_name = "[IP]:PORT", default_value = ":8080")]
    pub metrics_addr: Address,
    /// Directory where programs of releases are stored and run. One server uses it.
    #[arg(long, value_name = "DIR", default_value = "/payloads")]
    pub work_dir: PathBuf,
    /// Accepted for compatibility; ignored.
    #[arg(long, value_name = "PLATFORM")]
    pub platform: Option<String>,
    /// File with the FeatureGate of the hosted cluster.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/shared/99_feature-gate.yaml"
    )]
    pub feature_gate_manifest: PathBuf,
    /// Registry overrides. Comma-separated.
    #[arg(long, value_name = "SOURCE=MIRROR,...", default_value = "")]
    pub registry_overrides: Pairs,
    /// Image mirrors of the management cluster. Comma-separated; sources may be repeated. A single = is none.
    #[arg(
        long,
        value_name = "SOURCE=MIRROR,...",
        env = "OPENSHIFT_IMG_OVERRIDES",
        default_value = "",
        value_parser = mirrors
    )]
    pub openshift_img_overrides: Pairs,
    /// Registry flags.
    #[command(flatten)]
    pub registries: RegistryArgs,
    /// API server flags.
    #[command(flatten, next_help_heading = "API server")]
    pub api_server: ApiServerArgs,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let tls = serve::tls(&args.cert_file, &args.key_file)?;
    tool::run(&args.logging, work(args, tls))
}

/// How releases are read: from mirrors, with registries replaced.
fn releases(args: &Args) -> Result<Releases, Failure> {
    let options = args.registries.options().map_err(|error| Usage {
        message: error.to_string(),
    })?;
    // With what was extracted of their images, payloads are made without a registry after a restart of the container.
    let directory = options.directory.clone();
    let directory = directory.or_else(|| Some(args.work_dir.join("releases")));
    Ok(Releases::new(Options {
        directory,
        mirrors: Mirrors::new(args.openshift_img_overrides.grouped()),
        overrides: Overrides::new(args.registry_overrides.0.clone()),
        ..options
    })?)
}

/// Parses mirrors as other operators write them.
fn mirrors(text: &str) -> Result<Pairs, String> {
    if text.trim() == "=" {
        return Ok(Pairs::default());
    }
    text.parse()
}

async fn work(args: &Args, tls: rustls::ServerConfig) -> Result<(), Failure> {
    let client = support::client::connect(&support::client::config(&args.api_server).await?)?;
    let mut registry = Registry::default();
    let health = Health::new(&mut registry);
    let metrics = Metrics::new(&mut registry);
    let manager = Manager::new(&mut registry, &health);
    let check = health.check("watch", "waiting for the watch of Secrets");
    let listener = admin::listen(args.addr).await?;
    let probes = admin::listen(args.metrics_addr).await?;
    tokio::spawn(Admin { health, registry }.serve(probes));

    let cache = Arc::new(Cache::default());
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let server = Server {
        cache: Arc::clone(&cache),
        metrics: metrics.clone(),
        reached: sender,
        admission: Admission::new(serve::LIMITS),
    };
    let programs = Programs {
        client: client.clone(),
        namespace: args.namespace.clone(),
        hosted_control_plane: args.hosted_control_plane.clone(),
        releases: releases(args)?,
        work_directory: args.work_dir.clone(),
        feature_gate: args.feature_gate_manifest.clone(),
        state: State::default(),
    };
    let ctx = Context {
        client: client.clone(),
        namespace: args.namespace.clone(),
        hosted_control_plane: args.hosted_control_plane.clone(),
        recorder: tool::recorder(&client, reconcile::MANAGER),
        cache,
        metrics,
        programs: Some(Arc::new(programs)),
    };
    tokio::join!(
        server.run(listener, tls),
        reconcile::run(&ctx, &manager, &check),
        reached::run(client, args.namespace.clone(), receiver),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command};

    #[test]
    fn component_command_line_is_accepted() {
        let args = [
            "control-plane-operator",
            "ignition-server",
            "--namespace=clusters-dev",
            "--cert-file",
            "/var/run/secrets/ignition/serving-cert/tls.crt",
            "--key-file",
            "/var/run/secrets/ignition/serving-cert/tls.key",
            "--feature-gate-manifest=/shared/99_feature-gate.yaml",
            "--registry-overrides",
            "registry=override",
            "--platform",
            "AWS",
        ];
        let cli = Cli::try_parse_from(args).unwrap();
        let Command::IgnitionServer(args) = cli.command else {
            panic!("another subcommand");
        };
        assert_eq!(args.work_dir.as_os_str(), "/payloads");
    }

    #[test]
    fn a_single_equals_sign_is_no_mirror() {
        for (text, expected) in [
            ("=", Some(0)),
            ("", Some(0)),
            ("a.example=b.example,a.example=c.example", Some(2)),
            ("a.example=", None),
        ] {
            let parsed = super::mirrors(text).ok().map(|pairs| pairs.0.len());
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
