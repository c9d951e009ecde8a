//! Answers probes: it is well for as long as it runs.

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

/// Answers for ever at an address such as `:8081`.
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
        // A probe that goes away is no loss.
        drop(answer(stream).await);
    }
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 1024];
    // What is asked is of no consequence.
    let _ = stream.read(&mut head).await?;
    stream.write_all(ANSWER).await?;
    stream.shutdown().await
}
