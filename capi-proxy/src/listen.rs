//! Opens the sockets that clients connect to, and writes their addresses to a file.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use serde::Serialize;
use support::accept::Accept;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::args::Listen;
use crate::config::{Need, Place};
use crate::error::Error;

/// Who may connect to a Unix socket: its owner and its group.
const SOCKET_MODE: u32 = 0o660;

/// A socket that clients connect to.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// A client's connection, on its way from one thread to another.
#[derive(Debug)]
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(StdUnixStream),
}

/// A client's connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The file with the addresses at which clients and probes are served.
#[derive(Serialize)]
struct Addresses {
    /// The first of `listeners`.
    listen: Option<String>,
    admin: String,
    listeners: Vec<String>,
}

/// Opens all that must be opened, and what can be of the rest.
pub(crate) async fn open(places: &[Place]) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::with_capacity(places.len());
    for place in places {
        match (Listener::open(&place.listen).await, place.need) {
            (Ok(listener), _) => listeners.push(listener),
            (Err(error), Need::Required) => return Err(error),
            (Err(error), Need::IfPossible) => {
                tracing::debug!(
                    error = support::error::chain(&error),
                    "Address is not served"
                );
            }
        }
    }
    Ok(listeners)
}

/// Opens a TCP socket.
pub(crate) async fn tcp(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen { address, source })
}

// === impl Listener ===

impl Listener {
    async fn open(listen: &Listen) -> Result<Self, Error> {
        match listen {
            Listen::Tcp(address) => {
                if !address.ip().is_loopback() {
                    tracing::warn!(%address, "Clients on other machines can use the proxy's rights");
                }
                tcp(*address).await.map(Self::Tcp)
            }
            Listen::Unix(path) => {
                let listener = unix(path).map_err(|source| Error::ListenUnix {
                    path: path.clone(),
                    source,
                })?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }
}

impl Accept for Listener {
    type Connection = Accepted;

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Small writes are sent at once: a watch event must not wait for the next one.
                stream.set_nodelay(true)?;
                stream.into_std().map(Accepted::Tcp)
            }
            Self::Unix(listener, _) => listener.accept().await?.0.into_std().map(Accepted::Unix),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(error) => error.fmt(f),
            },
            Self::Unix(_, path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // The next start removes it, too.
            let _ = fs::remove_file(path);
        }
    }
}

/// Opens a Unix socket; one that a killed process has left behind is replaced.
fn unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && StdUnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

/// Writes the file with the addresses; it is complete whenever it exists.
pub(crate) fn announce(
    path: &Path,
    listeners: &[Listener],
    admin: SocketAddr,
) -> Result<(), Error> {
    let listeners = listeners.iter().map(Listener::to_string).collect();
    announce_as(path, listeners, admin)
}

/// The same, of addresses.
pub(crate) fn announce_as(
    path: &Path,
    listeners: Vec<String>,
    admin: SocketAddr,
) -> Result<(), Error> {
    let addresses = Addresses {
        listen: listeners.first().cloned(),
        admin: admin.to_string(),
        listeners,
    };
    let json = serde_json::to_vec(&addresses).expect("invariant: addresses are strings");
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let written = fs::write(&unfinished, json).and_then(|()| fs::rename(&unfinished, path));
    written.map_err(|source| Error::AddressFile {
        path: path.to_owned(),
        source,
    })
}

// === impl Accepted ===

impl Accepted {
    /// Hands the connection to this thread's runtime.
    pub(crate) fn into_socket(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Socket::Tcp),
            Self::Unix(stream) => UnixStream::from_std(stream).map(Socket::Unix),
        }
    }
}
