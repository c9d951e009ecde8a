//! Connections to the network of the hosted cluster, through konnectivity-server: mutual TLS, then HTTP CONNECT.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::connect::{self, Request};
use super::credentials::Credentials;
use super::stream::{server_name, tcp, within};
use super::target::{Host, Target};

/// Timeout of the TCP connection to konnectivity-server.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);
/// Timeout of the TLS handshake and the answer to CONNECT.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_mins(1);

/// Opens connections.
pub(crate) struct Tunnel {
    server: Target,
    credentials: Credentials,
}

/// A connection cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// To konnectivity-server.
    #[error(
        "failed to connect to konnectivity-server {server}: check that a pod of kube-apiserver is ready, and \
         --konnectivity-hostname and --konnectivity-port"
    )]
    Connect { server: Target, source: io::Error },
    /// TLS with konnectivity-server.
    #[error(
        "failed to establish TLS with konnectivity-server {server}: check that ConfigMap konnectivity-ca-bundle and \
         Secret konnectivity-client are those of its authority"
    )]
    Tls { server: Target, source: io::Error },
    /// From konnectivity-server to the target.
    #[error("failed to connect to {target} through konnectivity-server {server}: {}", hint(.source))]
    Request {
        target: Target,
        server: Target,
        source: connect::Error,
    },
}

/// What to do about a failure.
fn hint(error: &connect::Error) -> &'static str {
    match (error, error.status()) {
        (_, Some(405)) => {
            "check that the server runs with --mode=http-connect, and --konnectivity-port"
        }
        (_, Some(500)) => {
            "no agent is connected; check that nodes are ready, and that the pods of DaemonSet \
             kube-system/konnectivity-agent in the hosted cluster are running"
        }
        (_, Some(502)) => {
            "an agent failed to connect; check that the target is reachable from the nodes"
        }
        (_, Some(504)) => "an agent timed out; check that the target is reachable from the nodes",
        (connect::Error::Io(_) | connect::Error::Ended, _) => {
            "check that the pods of kube-apiserver are ready"
        }
        _ => "check --konnectivity-hostname and --konnectivity-port",
    }
}

// === impl Tunnel ===

impl Tunnel {
    /// A tunnel through this server.
    pub(crate) fn new(server: Target, credentials: Credentials) -> Self {
        Self {
            server,
            credentials,
        }
    }

    /// Opens a connection. `host` is the host that the client named.
    pub(crate) async fn open(
        &self,
        target: &Target,
        host: &Host,
    ) -> Result<TlsStream<TcpStream>, Error> {
        let stream = tcp(&self.server, CONNECT_TIMEOUT).await;
        let stream = stream.map_err(|source| Error::Connect {
            server: self.server.clone(),
            source,
        })?;
        let deadline = tokio::time::Instant::now() + HANDSHAKE_TIMEOUT;
        let mut stream = within(HANDSHAKE_TIMEOUT, self.handshake(stream))
            .await
            .map_err(|source| Error::Tls {
                server: self.server.clone(),
                source,
            })?;
        let request = Request {
            target: target.to_string(),
            host: host.to_string(),
            authorization: None,
        };
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        within(left, connect::connect(&mut stream, &request))
            .await
            .map_err(|source| Error::Request {
                target: target.clone(),
                server: self.server.clone(),
                source,
            })?;
        Ok(stream)
    }

    async fn handshake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = server_name(&self.server.host)?;
        let connector = TlsConnector::from(self.credentials.config());
        connector.connect(name, stream).await
    }
}

// === impl Error ===

impl Error {
    /// Whether another address of the same host may be reachable.
    pub(crate) fn is_of_target(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Tls { .. } => false,
            Self::Request { source, .. } => matches!(source.status(), Some(502..=504)),
        }
    }
}
