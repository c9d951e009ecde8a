//! `control-plane-operator kubernetes-default-proxy`: the address of the API server on a node, in clusters with a proxy.
//!
//! It is a static pod on nodes that reach the control plane through the HTTP proxy of the hosted cluster. Pods and
//! kubelet connect to a local address, as they would without a proxy:
//!
//! ```text
//! client ──> --listen-addr ──> --proxy-addr ── CONNECT ──> --apiserver-addr
//! ```
//!
//! Bytes are copied as they are: TLS is between the client and the API server. When one side ends its direction, both
//! connections are closed, so that none outlives its client.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use support::admin;
use support::args::{Address, LoggingArgs};
use support::error::chain;
use support::shutdown::Drain;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::error::Failure;
use crate::konnectivity::connect::{self, Request};
use crate::konnectivity::server::{self, Failures};
use crate::konnectivity::stream::{tcp, within};
use crate::konnectivity::target::{Host, Target};
use crate::tool;

/// Timeout of the connection to the proxy.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the answer to CONNECT: the proxy connects to the API server meanwhile.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);

/// The flags of `kubernetes-default-proxy`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Address to listen on: the one at which clients on the node expect the API server.
    #[arg(long, value_name = "[IP]:PORT")]
    pub listen_addr: Address,
    /// HTTP proxy of the hosted cluster, without a scheme.
    #[arg(long, value_name = "HOST:PORT", value_parser = target)]
    pub proxy_addr: ProxyTarget,
    /// Published address of the API server, which the proxy connects to.
    #[arg(long, value_name = "HOST:PORT", value_parser = target)]
    pub apiserver_addr: ProxyTarget,
    /// Logging flags.
    #[command(flatten, next_help_heading = "Logging")]
    pub logging: LoggingArgs,
}

const EXAMPLE: &str = "\
Example:
  control-plane-operator kubernetes-default-proxy --listen-addr 172.20.0.1:6443 \\
    --proxy-addr proxy.example.com:3128 --apiserver-addr api.example.com:443";

/// A host and a port of a flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyTarget(Target);

/// The address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to listen on {address}: assign it to an interface of this node (apiserver-ip.service does), or stop the \
     process that uses it"
)]
struct ListenError {
    address: String,
    source: io::Error,
}

/// A connection to the API server failed.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("failed to connect to proxy {proxy}: check the Proxy of the hosted cluster")]
    Proxy { proxy: Target, source: io::Error },
    #[error("failed to connect to API server {target} through proxy {proxy}")]
    Connect {
        proxy: Target,
        target: Target,
        source: connect::Error,
    },
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (proxy, target) = (args.proxy_addr.0.clone(), args.apiserver_addr.0.clone());
    tool::serve(&args.logging, |drain| async move {
        let listener = listen(args.listen_addr).await?;
        serve(listener, proxy, target, drain).await;
        Ok(())
    })
}

async fn listen(address: Address) -> Result<TcpListener, ListenError> {
    let listening = admin::listen(address).await;
    listening.map_err(|source| ListenError {
        address: match address {
            Address::One(address) => address.to_string(),
            Address::All(port) => format!("port {port}"),
        },
        source,
    })
}

async fn serve(listener: TcpListener, proxy: Target, target: Target, drain: Drain) {
    let route = Arc::new((proxy, target, Failures::default()));
    server::run(listener, drain, |client, slot| {
        let route = Arc::clone(&route);
        async move {
            let (proxy, target, failures) = &*route;
            match dial(proxy, target).await {
                Ok(stream) => relay(client, stream).await,
                Err(error) => failures.log(&chain(&error)),
            }
            drop(slot);
        }
    })
    .await;
}

/// Copies in both directions until one of them ends or fails; then both connections are closed. A failure is that of a
/// client, or of a server that was restarted.
async fn relay(mut client: TcpStream, mut server: TcpStream) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let ended = tokio::select! {
        sent = tokio::io::copy(&mut from_client, &mut to_server) => sent,
        received = tokio::io::copy(&mut from_server, &mut to_client) => received,
    };
    tracing::debug!(
        error = ended.err().map(|it| it.to_string()),
        "Closing a connection"
    );
    // What was copied is sent before the end. A connection that is broken already needs none.
    let _ = to_client.shutdown().await;
    let _ = to_server.shutdown().await;
}

/// Opens a connection to the API server.
async fn dial(proxy: &Target, target: &Target) -> Result<TcpStream, DialError> {
    let stream = tcp(proxy, DIAL_TIMEOUT).await;
    let mut stream = stream.map_err(|source| DialError::Proxy {
        proxy: proxy.clone(),
        source,
    })?;
    let request = Request {
        target: target.to_string(),
        host: target.to_string(),
        authorization: None,
    };
    let connecting = within(CONNECT_TIMEOUT, connect::connect(&mut stream, &request)).await;
    connecting.map_err(|source| DialError::Connect {
        proxy: proxy.clone(),
        target: target.clone(),
        source,
    })?;
    Ok(stream)
}

/// Parses `HOST:PORT`.
fn target(text: &str) -> Result<ProxyTarget, String> {
    let expected = || "expected HOST:PORT, for example proxy.example.com:3128".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    if host.contains("://") {
        return Err(expected());
    }
    if host.contains(':') && !host.starts_with('[') {
        return Err("write an IPv6 address as [ADDRESS]:PORT".to_owned());
    }
    let host: Host = host.parse().map_err(|_| expected())?;
    match port.parse() {
        Ok(port @ 1..) => Ok(ProxyTarget(Target::new(host, port))),
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests;
