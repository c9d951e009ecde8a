//! `control-plane-operator konnectivity-https-proxy`: an HTTP proxy to the network of the hosted cluster.
//!
//! It is a sidecar of components that use `HTTPS_PROXY`. If the hosted cluster has a proxy, connections go through that
//! one, too.

mod forward;
mod serve;

use support::args::LoggingArgs;
use support::shutdown::Drain;

use crate::error::{Failure, Usage};
use crate::konnectivity::no_proxy::NoProxy;
use crate::konnectivity::proxies::{Confidential, Proxies};
use crate::konnectivity::resolver::{Dns, Settings, Unresolved};
use crate::konnectivity::{proxy_url, server};
use crate::{konnectivity, tool};
use serve::Proxy;

/// The flags of `konnectivity-https-proxy`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Flags of both proxies.
    #[command(flatten)]
    pub konnectivity: konnectivity::ProxyArgs,
    /// Proxy of the hosted cluster for http URLs, for example `http://proxy.example.com:3128`.
    #[arg(
        long,
        value_name = "URL",
        default_value = "",
        hide_default_value = true
    )]
    pub http_proxy: Confidential,
    /// Proxy of the hosted cluster for CONNECT requests.
    #[arg(
        long,
        value_name = "URL",
        default_value = "",
        hide_default_value = true
    )]
    pub https_proxy: Confidential,
    /// Hosts, domains and networks that are reached without the proxy of the hosted cluster.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "",
        hide_default_value = true
    )]
    pub no_proxy: String,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let proxies = proxies(args)?;
    tool::serve(&args.logging, |drain| serve(args, proxies, drain))
}

async fn serve(args: &Args, proxies: Proxies, drain: Drain) -> Result<(), Failure> {
    let settings = Some(resolver(args));
    let dialer = args.konnectivity.dialer(settings, &proxies).await?;
    let listener = server::listen(args.konnectivity.serving_port).await?;
    Proxy::new(dialer, proxies).run(listener, drain).await;
    Ok(())
}

/// Names are resolved before the tunnel, in the hosted cluster only.
fn resolver(args: &Args) -> Settings {
    Settings {
        dns: Dns::Guest,
        unresolved: Unresolved::Resolve,
        family: args.konnectivity.family(),
    }
}

/// The proxies of the hosted cluster.
fn proxies(args: &Args) -> Result<Proxies, Usage> {
    Ok(Proxies {
        http: proxy_url("--http-proxy", &args.http_proxy.0)?,
        https: proxy_url("--https-proxy", &args.https_proxy.0)?,
        no_proxy: NoProxy::new(&args.no_proxy),
    })
}

#[cfg(test)]
mod tests;
