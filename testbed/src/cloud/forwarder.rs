//! A port on loopback whose connections lead to another address.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A port that is open until this is dropped.
#[derive(Debug)]
pub(super) struct Forwarder {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

// === impl Forwarder ===

impl Forwarder {
    /// Opens a port for an address.
    pub(super) async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot open a port on loopback")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, target));
        Ok(Self { address, accepting })
    }

    /// The port.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(forward(client, target));
        // Connections that ended are of no more use.
        while connections.try_join_next().is_some() {}
    }
}

async fn forward(mut client: TcpStream, target: SocketAddr) {
    // The client sees its connection end, and says so.
    if let Ok(mut server) = TcpStream::connect(target).await {
        drop(copy_bidirectional(&mut client, &mut server).await);
    }
}
