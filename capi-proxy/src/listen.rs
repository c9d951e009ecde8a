//! Listeners for clients, and the file with their addresses.

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
use crate::config::{Address, Requirement};
use crate::error::Error;

/// Mode of a Unix socket: its owner and group can connect.
const SOCKET_MODE: u32 = 0o660;

/// A listener for clients.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// A client connection that is passed to another thread.
#[derive(Debug)]
pub(crate) enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(StdUnixStream),
}

/// A client connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The contents of the address file.
#[derive(Serialize)]
struct Addresses {
    /// The first of `listeners`.
    listen: Option<String>,
    admin: String,
    listeners: Vec<String>,
}

/// Opens all listeners; optional ones may fail.
pub(crate) async fn open(addresses: &[Address]) -> Result<Vec<Listener>, Error> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for address in addresses {
        match (Listener::open(&address.listen).await, address.requirement) {
            (Ok(listener), _) => listeners.push(listener),
            (Err(error), Requirement::Required) => return Err(error),
            (Err(error), Requirement::Optional) => {
                tracing::debug!(
                    error = support::error::chain(&error),
                    "Skipping address that cannot be used"
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
                    tracing::warn!(%address, "Clients on other machines can use the permissions of the proxy");
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

/// Opens a Unix socket, and replaces one that a killed process left behind.
fn unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && StdUnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

/// Writes the address file atomically.
pub(crate) fn write_address_file(
    path: &Path,
    listeners: &[Listener],
    admin: SocketAddr,
) -> Result<(), Error> {
    let listeners = listeners.iter().map(Listener::to_string).collect();
    write_addresses(path, listeners, admin)
}

/// The same, of addresses.
pub(crate) fn write_addresses(
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
    /// Registers the connection with the runtime of this thread.
    pub(crate) fn into_socket(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(stream) => TcpStream::from_std(stream).map(Socket::Tcp),
            Self::Unix(stream) => UnixStream::from_std(stream).map(Socket::Unix),
        }
    }
}
