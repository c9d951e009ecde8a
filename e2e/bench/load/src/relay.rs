//! A bare TCP relay: what it costs to have anything at all between client and server.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// Accepts connections on `listen` and connects each to `to`, for ever.
pub async fn run(listen: SocketAddr, to: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    loop {
        let (client, _) = listener
            .accept()
            .await
            .context("cannot accept a connection")?;
        tokio::spawn(async move {
            // A connection that breaks is noticed by the client, which then fails the run.
            drop(relay(client, to).await);
        });
    }
}

async fn relay(mut client: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
