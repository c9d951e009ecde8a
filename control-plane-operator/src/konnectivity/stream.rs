//! Byte streams of any kind, and how they are opened.

use std::io;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::target::{Host, Target};

/// Silence after which the kernel probes a connection. Without probes, streams whose peer has gone stay for ever.
const KEEPALIVE_TIME: Duration = Duration::from_secs(30);
/// Time between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer that close a connection.
const KEEPALIVE_RETRIES: u32 = 3;

/// A stream.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A stream of any kind.
pub(crate) type BoxedIo = Box<dyn Io>;

/// Limits the time of a step.
pub(crate) async fn within<T, E: From<io::Error>>(
    limit: Duration,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    if let Ok(result) = tokio::time::timeout(limit, step).await {
        return result;
    }
    let text = format!("no answer within {limit:?}");
    Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
}

/// Connects over TCP.
pub(crate) async fn tcp(target: &Target, limit: Duration) -> io::Result<TcpStream> {
    let connecting = async {
        match &target.host {
            Host::Ip(address) => TcpStream::connect((*address, target.port)).await,
            Host::Name(name) => TcpStream::connect((name.as_str(), target.port)).await,
        }
    };
    let stream = within(limit, connecting).await?;
    tune(&stream)?;
    Ok(stream)
}

/// Sets socket options: small writes are sent at once, and a connection whose peer has gone is closed.
pub(crate) fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_TIME)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// The name that the certificate of a server must have.
pub(crate) fn server_name(host: &Host) -> io::Result<ServerName<'static>> {
    match host {
        Host::Ip(address) => Ok(ServerName::from(*address)),
        Host::Name(_) => {
            let name = host.name().unwrap_or_default().to_owned();
            ServerName::try_from(name).map_err(io::Error::other)
        }
    }
}
