//! Serves probes: the program is healthy as long as it runs.

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const RESPONSE: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Serves forever at an address such as `:8081`.
pub(crate) async fn serve(address: &str) -> Result<()> {
    let address = match address.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => address.to_owned(),
    };
    let listener = TcpListener::bind(&address)
        .await
        .with_context(|| format!("cannot listen at {address}"))?;
    loop {
        let (stream, _) = listener.accept().await.context("cannot accept")?;
        // A client that disconnects is no failure.
        drop(response(stream).await);
    }
}

async fn response(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 1024];
    // The content of the request is irrelevant.
    let _ = stream.read(&mut head).await?;
    stream.write_all(RESPONSE).await?;
    stream.shutdown().await
}
