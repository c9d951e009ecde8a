//! Opens connections to the API server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Limits;
use crate::credentials::{Alpn, Endpoint, Identity, Session};

/// The interval of keepalive probes to a silent peer.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

const SECOND: Duration = Duration::from_secs(1);

/// Opens connections.
#[derive(Debug)]
pub(super) struct Connector {
    limits: Limits,
}

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Why connecting failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("failed to resolve {host}")]
    Resolve { host: String, source: io::Error },
    #[error("the host name {host} has no address")]
    NoAddress { host: String },
    #[error("no connection")]
    Tcp { source: io::Error },
    #[error("no TLS")]
    Tls { source: io::Error },
    #[error("no response within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// HTTP/2 was negotiated, and its handshake failed.
    #[error("no HTTP/2")]
    Http2 { source: h2::Error },
}

// === impl Connector ===

impl Connector {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits }
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Opens a connection with the client certificate of `identity`.
    pub(super) async fn connect(
        &self,
        session: &Session,
        identity: Identity,
        alpn: Alpn,
    ) -> Result<Connected, ConnectError> {
        let limits = self.limits;
        let connected = tokio::time::timeout(limits.connect, open(session, identity, alpn, limits));
        let stream = connected
            .await
            .map_err(|_| ConnectError::Timeout(limits.connect))??;
        Ok(Connected { stream, limits })
    }
}

/// A new connection, and its timeouts.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) stream: Stream,
    pub(super) limits: Limits,
}

async fn open(
    session: &Session,
    identity: Identity,
    alpn: Alpn,
    limits: Limits,
) -> Result<Stream, ConnectError> {
    let tcp = tcp(&session.endpoint).await?;
    tune(&tcp, limits).map_err(|source| ConnectError::Tcp { source })?;
    let Some(tls) = &session.tls else {
        return Ok(Stream::Plain(tcp));
    };
    let connector = TlsConnector::from(tls.config(identity, alpn));
    let stream = connector
        .connect(tls.name(), tcp)
        .await
        .map_err(|source| ConnectError::Tls { source })?;
    Ok(Stream::Tls(Box::new(stream)))
}

async fn tcp(endpoint: &Endpoint) -> Result<TcpStream, ConnectError> {
    let host = || endpoint.host.clone();
    let addresses = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port))
        .await
        .map_err(|source| ConnectError::Resolve {
            host: host(),
            source,
        })?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(source) => ConnectError::Tcp { source },
        None => ConnectError::NoAddress { host: host() },
    })
}

/// Sends small writes immediately, and detects an unreachable peer.
fn tune(stream: &TcpStream, limits: Limits) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    // The kernel counts in seconds.
    let idle = limits.ping.max(SECOND);
    let interval = KEEPALIVE_INTERVAL.min(limits.pong).max(SECOND);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(idle)
            .with_interval(interval)
            .with_retries(3),
    )?;
    // Also for unacknowledged bytes, which the kernel would retransmit for a quarter of an hour.
    socket.set_tcp_user_timeout(Some(limits.ping + limits.pong))
}

// === impl Stream ===

impl Stream {
    /// Whether HTTP/2 was negotiated.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
