//! A TCP relay that cuts connections: at once, or somewhere in the next bytes.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::fidelity::random::Random;

/// How much is forwarded at a time.
const CHUNK: usize = 16 * 1024;
/// The connection is cut within this many bytes of the response, so that it mostly falls into an event.
const WITHIN: u64 = 3000;

/// A relay on a port of its own.
#[derive(Debug)]
pub(crate) struct Cutter {
    port: u16,
    lines: Arc<Mutex<Vec<Line>>>,
    accepting: tokio::task::JoinHandle<()>,
}

/// A connection through the relay: how many bytes of its responses may still pass, if that is limited.
type Line = watch::Sender<Option<u64>>;

// === impl Cutter ===

impl Cutter {
    /// A relay to a port on loopback.
    pub(crate) async fn start(upstream: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let lines: Arc<Mutex<Vec<Line>>> = Arc::default();
        let accepting = tokio::spawn(accept(listener, upstream, Arc::clone(&lines)));
        Ok(Self {
            port,
            lines,
            accepting,
        })
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts one connection, if there is any, within the next bytes.
    pub(crate) fn cut_one(&self, random: &mut Random) -> bool {
        let lines = self.open();
        if lines.is_empty() {
            return false;
        }
        lines[random.index(lines.len())]
            .send(Some(random.below(WITHIN)))
            .is_ok()
    }

    /// Cuts all connections at once.
    pub(crate) fn cut_all(&self) -> bool {
        let lines = self.open();
        lines
            .iter()
            .filter(|line| line.send(Some(0)).is_ok())
            .count()
            > 0
    }

    /// The connections that are still open.
    fn open(&self) -> Vec<Line> {
        let mut lines = self
            .lines
            .lock()
            .expect("invariant: no thread panics while holding it");
        lines.retain(|line| !line.is_closed());
        lines.clone()
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: u16, lines: Arc<Mutex<Vec<Line>>>) {
    while let Ok((client, _)) = listener.accept().await {
        let (line, limit) = watch::channel(None);
        lines
            .lock()
            .expect("invariant: no thread panics while holding it")
            .push(line);
        tokio::spawn(async move {
            // An end of either side ends the other: that is the point of this.
            if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await {
                drop(relay(client, server, limit).await);
            }
        });
    }
}

async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    limit: watch::Receiver<Option<u64>>,
) -> Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => {}
        _ = forward(&mut from_server, &mut to_client, limit) => {}
    }
    Ok(())
}

/// Forwards responses until they end or are cut.
async fn forward(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    mut limit: watch::Receiver<Option<u64>>,
) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut left = u64::MAX;
    while left > 0 {
        tokio::select! {
            changed = limit.changed() => {
                changed?;
                left = limit.borrow_and_update().map_or(left, |limit| limit.min(left));
            }
            read = from.read(&mut buffer) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                let passes = usize::try_from(left).unwrap_or(usize::MAX).min(read);
                to.write_all(&buffer[..passes]).await?;
                if left != u64::MAX {
                    left -= passes as u64;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pair(upstream: &TcpListener, cutter: &Cutter) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, cutter.port()))
            .await
            .unwrap();
        let (server, _) = upstream.accept().await.unwrap();
        (client, server)
    }

    #[tokio::test]
    async fn cuts_within_the_next_bytes() {
        let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let cutter = Cutter::start(upstream.local_addr().unwrap().port())
            .await
            .unwrap();
        assert!(!cutter.cut_all());
        let (mut client, mut server) = pair(&upstream, &cutter).await;
        client.write_all(b"ask").await.unwrap();
        let mut requested = [0; 3];
        server.read_exact(&mut requested).await.unwrap();
        assert_eq!(&requested, b"ask");
        assert!(cutter.cut_one(&mut Random::new(3)));
        // The cut is not known to come before these bytes, but before their end.
        let writing =
            tokio::spawn(async move { while server.write_all(&[7; 1000]).await.is_ok() {} });
        let mut read = Vec::new();
        // Cut off, with or without a reset.
        drop(client.read_to_end(&mut read).await);
        assert!(read.iter().all(|&byte| byte == 7));
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn cuts_all_connections_at_once() {
        let upstream = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let cutter = Cutter::start(upstream.local_addr().unwrap().port())
            .await
            .unwrap();
        let (mut one, _one) = pair(&upstream, &cutter).await;
        let (mut two, _two) = pair(&upstream, &cutter).await;
        assert!(cutter.cut_all());
        let mut read = Vec::new();
        for client in [&mut one, &mut two] {
            drop(client.read_to_end(&mut read).await);
        }
        assert!(read.is_empty());
    }
}
