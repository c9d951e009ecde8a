//! A port on loopback that leads to another one, or nowhere: who connects to it stays while what is behind changes.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// The port.
#[derive(Debug)]
pub struct Junction {
    port: u16,
    target: watch::Sender<Option<u16>>,
    accepting: JoinHandle<()>,
}

// === impl Junction ===

impl Junction {
    /// Listens; connections are closed until it is told where to lead.
    pub async fn open() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let (target, told) = watch::channel(None);
        Ok(Self {
            port,
            target,
            accepting: tokio::spawn(accept(listener, told)),
        })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on it leads to this port, or nowhere. Connections that led elsewhere end.
    pub fn lead_to(&self, port: Option<u16>) {
        self.target.send_replace(port);
    }
}

impl Drop for Junction {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, mut told: watch::Receiver<Option<u16>>) {
    // Connections end with the junction.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let target = *told.borrow_and_update();
        if let Some(port) = target {
            connections.spawn(join(stream, port, told.clone()));
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Passes bytes until one end is closed, or the junction leads elsewhere.
async fn join(mut near: TcpStream, port: u16, mut told: watch::Receiver<Option<u16>>) {
    let Ok(mut far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = told.wait_for(|target| *target != Some(port)) => {}
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
    async fn it_leads_where_it_is_told_and_drops_who_led_elsewhere() {
        let (one, two) = (says(1).await, says(2).await);
        let junction = Junction::open().await.unwrap();
        assert_eq!(one_byte(junction.port()).await, None);
        junction.lead_to(Some(one));
        let mut kept = TcpStream::connect((Ipv4Addr::LOCALHOST, junction.port()))
            .await
            .unwrap();
        assert_eq!(kept.read_u8().await.unwrap(), 1);
        junction.lead_to(Some(two));
        assert!(kept.read_u8().await.is_err());
        assert_eq!(one_byte(junction.port()).await, Some(2));
        junction.lead_to(None);
        assert_eq!(one_byte(junction.port()).await, None);
    }
}
