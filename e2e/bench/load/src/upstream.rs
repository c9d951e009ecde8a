//! A fake API server that is as fast as can be: canned bodies over TLS, HTTP/1.1 or HTTP/2.
//!
//! It is strict where the peers could cheat or err: an unknown path, a missing token or a patch that is not the
//! expected one with stored names is rejected.

mod response;
mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::tls;
use response::Server;

/// Streams on one HTTP/2 connection: what the API server allows.
const MAX_STREAMS: u32 = 250;

/// What the server is started with.
#[derive(Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Its certificate, PEM.
    pub certificate: PathBuf,
    /// The certificate's key, PEM.
    pub key: PathBuf,
    /// A file with the one token that it accepts.
    pub token: PathBuf,
}

/// Serves for ever.
pub async fn run(settings: Settings) -> Result<()> {
    let Settings {
        listen,
        certificate,
        key,
        token,
    } = settings;
    let acceptor = TlsAcceptor::from(tls::server(&certificate, &key)?);
    let server = Arc::new(Server::new(&read_token(&token)?));
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    loop {
        let (connection, _) = listener
            .accept()
            .await
            .context("cannot accept a connection")?;
        let (acceptor, server) = (acceptor.clone(), Arc::clone(&server));
        tokio::spawn(async move {
            // A client that disconnects is not an error of the server.
            drop(serve(connection, acceptor, server).await);
        });
    }
}

/// The token in a file, without the line's end.
pub fn read_token(path: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

async fn serve(connection: TcpStream, acceptor: TlsAcceptor, server: Arc<Server>) -> Result<()> {
    connection.set_nodelay(true)?;
    let connection = acceptor.accept(connection).await?;
    let http2 = connection.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, std::convert::Infallible>(server.response(request).await) }
    });
    let connection = TokioIo::new(connection);
    if http2 {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .serve_connection(connection, service)
            .await?;
    } else {
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(connection, service)
            .await?;
    }
    Ok(())
}
