//! `control-plane-operator konnectivity-socks5-proxy`: a SOCKS5 proxy to the network of the hosted cluster.
//!
//! It is a sidecar of components that connect to hosts there, such as identity providers and image registries.

mod protocol;
mod serve;

use support::args::LoggingArgs;
use support::shutdown::Drain;

use crate::error::Failure;
use crate::konnectivity::proxies::Proxies;
use crate::konnectivity::resolver::{Dns, Settings, Unresolved};
use crate::konnectivity::server;
use crate::{konnectivity, tool};
use serve::Proxy;

/// The flags of `konnectivity-socks5-proxy`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Flags of both proxies.
    #[command(flatten)]
    pub konnectivity: konnectivity::ProxyArgs,
    /// Resolve names with DNS of the hosted cluster.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub resolve_from_guest_cluster_dns: bool,
    /// While DNS of the hosted cluster fails, resolve names in the management cluster, and connect from there.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub resolve_from_management_cluster_dns: bool,
    /// Resolve no names: the agents in the hosted cluster do.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub disable_resolver: bool,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    tool::serve(&args.logging, |drain| serve(args, drain))
}

async fn serve(args: &Args, drain: Drain) -> Result<(), Failure> {
    let dialer = args
        .konnectivity
        .dialer(resolver(args), &Proxies::default())
        .await?;
    let listener = server::listen(args.konnectivity.serving_port).await?;
    Proxy::new(dialer).run(listener, drain).await;
    Ok(())
}

/// How names are resolved; none if they are not.
fn resolver(args: &Args) -> Option<Settings> {
    if args.disable_resolver {
        return None;
    }
    let dns = match (
        args.resolve_from_guest_cluster_dns,
        args.resolve_from_management_cluster_dns,
    ) {
        (false, _) => Dns::Management,
        (true, false) => Dns::Guest,
        (true, true) => Dns::GuestThenManagement,
    };
    Some(Settings {
        dns,
        unresolved: Unresolved::Keep,
        family: args.konnectivity.family(),
    })
}

#[cfg(test)]
mod tests;
