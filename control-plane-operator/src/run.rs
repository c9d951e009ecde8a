//! `control-plane-operator run`: starts everything, and ends it in order.

use support::args::{Address, ApiServerArgs, LeaderArgs, LoggingArgs, Time};

use crate::error::Failure;
use crate::settings::SettingsArgs;

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
    /// Where what is read of releases is kept.
    #[arg(long, value_name = "DIR", default_value = "/tmp/releases")]
    pub release_cache_dir: std::path::PathBuf,
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

/// Runs until a signal ends it.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let _ = args;
    Err("run is not wired up in this build".into())
}
