//! A TCP proxy on loopback with a target that can be switched, or removed: clients keep its port while the target changes.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The port.
#[derive(Debug)]
pub struct SwitchableProxy {
    port: u16,
    target: watch::Sender<Option<SocketAddr>>,
    accepting: JoinHandle<()>,
}

// === impl SwitchableProxy ===

impl SwitchableProxy {
    /// Listens; connections are closed until it has a target.
    pub async fn open() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let (target, target_changes) = watch::channel(None);
        Ok(Self {
            port,
            target,
            accepting: tokio::spawn(accept(listener, target_changes)),
        })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on it leads to this port on loopback, or nowhere. Connections that led elsewhere end.
    pub fn switch_to(&self, port: Option<u16>) {
        self.lead_to(port.map(|port| (Ipv4Addr::LOCALHOST, port).into()));
    }

    /// The same with any address.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        self.target.send_replace(target);
    }
}

impl Drop for SwitchableProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, mut target_changes: watch::Receiver<Option<SocketAddr>>) {
    // Connections end with the proxy.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let current = *target_changes.borrow_and_update();
        if let Some(target) = current {
            connections.spawn(join(stream, target, target_changes.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Passes bytes until one end is closed, or the proxy leads elsewhere.
async fn join(
    mut near: TcpStream,
    target: SocketAddr,
    mut target_changes: watch::Receiver<Option<SocketAddr>>,
) {
    let Ok(mut far) = TcpStream::connect(target).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = target_changes.wait_for(|current| *current != Some(target)) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn one_byte(port: u16) -> Option<u8> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.ok()?;
        stream.read_u8().await.ok()
    }

    async fn says(byte: u8) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_u8(byte).await.unwrap();
                held.push(stream);
            }
        });
        port
    }

    #[tokio::test]
    async fn it_follows_the_target_and_closes_old_connections() {
        let (one, two) = (says(1).await, says(2).await);
        let proxy = SwitchableProxy::open().await.unwrap();
        assert_eq!(one_byte(proxy.port()).await, None);
        proxy.switch_to(Some(one));
        let mut kept = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()))
            .await
            .unwrap();
        assert_eq!(kept.read_u8().await.unwrap(), 1);
        proxy.switch_to(Some(two));
        assert!(kept.read_u8().await.is_err());
        assert_eq!(one_byte(proxy.port()).await, Some(2));
        proxy.switch_to(None);
        assert_eq!(one_byte(proxy.port()).await, None);
    }
}
