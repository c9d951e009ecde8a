//! The messages of SOCKS5 (RFC 1928), without authentication and with the command CONNECT only.
//!
//! All messages of clients have a maximum size of about 260 bytes, and no byte after them is read.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::konnectivity::dialer::Reason;
use crate::konnectivity::target::{Host, Target};

const VERSION: u8 = 5;
/// Authentication method: none.
const NO_AUTHENTICATION: u8 = 0;
/// Answer to a client that offers no supported method.
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// A reply to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    ConnectionRefused = 5,
    TtlExpired = 6,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

/// A client does not follow the protocol.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The connection failed.
    #[error("the connection of the client failed")]
    Io(#[from] io::Error),
    /// Another protocol.
    #[error("the client does not use SOCKS5")]
    Version,
    /// Authentication is required by the client.
    #[error("the client supports no connection without authentication")]
    Authentication,
    /// The request is refused, with this reply.
    #[error("the request of the client is refused: {0:?}")]
    Refused(Reply),
}

/// Reads the greeting and the request.
pub(super) async fn accept<S>(stream: &mut S) -> Result<Target, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    greet(stream).await?;
    let request = read_request(stream).await;
    if let Err(Error::Refused(reply)) = request {
        reply.write(stream).await?;
    }
    request
}

async fn greet<S>(stream: &mut S) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if stream.read_u8().await? != VERSION {
        return Err(Error::Version);
    }
    let methods = read(stream).await?;
    let is_supported = methods.contains(&NO_AUTHENTICATION);
    let method = if is_supported {
        NO_AUTHENTICATION
    } else {
        NO_METHOD
    };
    stream.write_all(&[VERSION, method]).await?;
    if !is_supported {
        return Err(Error::Authentication);
    }
    Ok(())
}

async fn read_request<S>(stream: &mut S) -> Result<Target, Error>
where
    S: AsyncRead + Unpin,
{
    let [version, command, _reserved] = read_array(stream).await?;
    if version != VERSION {
        return Err(Error::Version);
    }
    let host = read_host(stream).await?;
    let port = stream.read_u16().await?;
    if command != CONNECT {
        return Err(Error::Refused(Reply::CommandNotSupported));
    }
    let host = host.ok_or(Error::Refused(Reply::GeneralFailure))?;
    Ok(Target::new(host, port))
}

/// The host; none if the name is not valid. Clients may send an address as a name.
async fn read_host<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<Host>, Error> {
    match stream.read_u8().await? {
        IPV4 => {
            let address = Ipv4Addr::from(read_array::<4, S>(stream).await?);
            Ok(Some(Host::Ip(address.into())))
        }
        IPV6 => {
            let address = Ipv6Addr::from(read_array::<16, S>(stream).await?);
            Ok(Some(Host::Ip(address.to_canonical())))
        }
        NAME => {
            let name = read(stream).await?;
            let name = std::str::from_utf8(&name).ok();
            Ok(name.and_then(|name| name.parse().ok()))
        }
        _ => Err(Error::Refused(Reply::AddressTypeNotSupported)),
    }
}

/// Reads bytes after their number.
async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let length = stream.read_u8().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_array<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

// === impl Reply ===

impl Reply {
    /// The reply for a connection that cannot be opened.
    pub(super) fn of(reason: Reason) -> Self {
        match reason {
            Reason::Unresolved => Self::HostUnreachable,
            Reason::Unavailable => Self::NetworkUnreachable,
            Reason::Refused => Self::ConnectionRefused,
            Reason::TimedOut => Self::TtlExpired,
        }
    }

    /// Writes the reply. The address in it is unspecified: clients do not use it.
    pub(super) async fn write<S: AsyncWrite + Unpin>(self, stream: &mut S) -> io::Result<()> {
        let bytes = [VERSION, self as u8, 0, IPV4, 0, 0, 0, 0, 0, 0];
        stream.write_all(&bytes).await?;
        stream.flush().await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::duplex;

    use super::*;

    /// What the server makes of the bytes of a client, and what it answers. Bytes arrive one by one.
    async fn exchange(sent: &[u8]) -> (String, Vec<u8>) {
        let (mut stream, mut server) = duplex(1);
        let serve = async move {
            let result = accept(&mut server).await;
            let mut rest = Vec::new();
            if result.is_ok() {
                server.read_to_end(&mut rest).await.unwrap();
            }
            drop(server);
            let rest = String::from_utf8_lossy(&rest).into_owned();
            match result {
                Ok(target) => format!("{target} {rest}"),
                Err(error) => error.to_string(),
            }
        };
        let client = async move {
            let (mut reader, mut writer) = tokio::io::split(&mut stream);
            let write = async move {
                // A server that has seen enough closes the connection.
                let _ = writer.write_all(sent).await;
                let _ = writer.shutdown().await;
            };
            let mut answer = Vec::new();
            let ((), read) = tokio::join!(write, reader.read_to_end(&mut answer));
            read.unwrap();
            answer
        };
        tokio::join!(serve, client)
    }

    fn reply(code: u8) -> Vec<u8> {
        vec![5, 0, 5, code, 0, 1, 0, 0, 0, 0, 0, 0]
    }

    #[tokio::test]
    async fn requests_are_read() {
        let name = |name: &[u8]| {
            let length = u8::try_from(name.len()).unwrap();
            [&[5, 1, 0, 5, 1, 0, 3, length][..], name, &[1, 187]].concat()
        };
        let ipv4 = vec![5, 1, 0, 5, 1, 0, 1, 10, 0, 0, 1, 0, 80, b'h', b'i'];
        let mut ipv6 = vec![5, 2, 2, 0, 5, 1, 0, 4, 0xfd];
        ipv6.extend([0; 14]);
        ipv6.extend([1, 0, 80]);
        let refused = |reply: &str| format!("the request of the client is refused: {reply}");
        let closed = "the connection of the client failed";
        for (title, sent, expected, answer) in [
            (
                "IPv4, with data",
                ipv4,
                "10.0.0.1:80 hi".to_owned(),
                vec![5, 0],
            ),
            ("IPv6", ipv6, "[fd00::1]:80 ".to_owned(), vec![5, 0]),
            (
                "name",
                name(b"Quay.io"),
                "quay.io:443 ".to_owned(),
                vec![5, 0],
            ),
            (
                "address as name",
                name(b"::1"),
                "[::1]:443 ".to_owned(),
                vec![5, 0],
            ),
            (
                "longest name",
                name(&[b'a'; 255]),
                refused("GeneralFailure"),
                reply(1),
            ),
            ("empty name", name(b""), refused("GeneralFailure"), reply(1)),
            (
                "line break",
                name(b"a\r\nb"),
                refused("GeneralFailure"),
                reply(1),
            ),
            (
                "no UTF-8",
                name(&[0xff]),
                refused("GeneralFailure"),
                reply(1),
            ),
            (
                "BIND",
                vec![5, 1, 0, 5, 2, 0, 1, 10, 0, 0, 1, 0, 80],
                refused("CommandNotSupported"),
                reply(7),
            ),
            (
                "UDP",
                vec![5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0],
                refused("CommandNotSupported"),
                reply(7),
            ),
            (
                "address type",
                vec![5, 1, 0, 5, 1, 0, 2],
                refused("AddressTypeNotSupported"),
                reply(8),
            ),
            (
                "password only",
                vec![5, 1, 2],
                "the client supports no connection without authentication".to_owned(),
                vec![5, 0xff],
            ),
            (
                "no method",
                vec![5, 0],
                "the client supports no connection without authentication".to_owned(),
                vec![5, 0xff],
            ),
            (
                "SOCKS4",
                vec![4, 1, 0, 80],
                "the client does not use SOCKS5".to_owned(),
                vec![],
            ),
            (
                "HTTP",
                b"CONNECT a:1".to_vec(),
                "the client does not use SOCKS5".to_owned(),
                vec![],
            ),
            (
                "other version later",
                vec![5, 1, 0, 4, 1, 0],
                "the client does not use SOCKS5".to_owned(),
                vec![5, 0],
            ),
            ("nothing", vec![], closed.to_owned(), vec![]),
            ("cut greeting", vec![5, 3, 0], closed.to_owned(), vec![]),
            (
                "cut request",
                vec![5, 1, 0, 5, 1, 0, 1, 10],
                closed.to_owned(),
                vec![5, 0],
            ),
        ] {
            assert_eq!(exchange(&sent).await, (expected, answer), "{title}");
        }
    }

    #[test]
    fn reasons_have_replies() {
        for (reason, code) in [
            (Reason::Unresolved, 4),
            (Reason::Unavailable, 3),
            (Reason::Refused, 5),
            (Reason::TimedOut, 6),
        ] {
            assert_eq!(Reply::of(reason) as u8, code, "{reason:?}");
        }
    }

    proptest! {
        /// Whatever a client sends is a request or an error, and a target is safe to write.
        #[test]
        fn any_client_is_handled(tail in prop::collection::vec(any::<u8>(), 0..60)) {
            let sent = [&[5, 1, 0, 5, 1, 0][..], &tail].concat();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut stream = tokio::io::join(sent.as_slice(), tokio::io::sink());
            if let Ok(target) = runtime.block_on(accept(&mut stream)) {
                prop_assert!(target.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
