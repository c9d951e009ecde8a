//! A server that responds to the first line of each connection, in TLS or plain as its first byte says.

use std::io::{Error, Result};
use std::ops::AsyncFn;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// For one connection.
const PATIENCE: Duration = Duration::from_secs(15);
/// What a connection of TLS begins with.
const HANDSHAKE: u8 = 0x16;
/// More than the request of any probe.
const LONGEST_HEAD: usize = 8192;
/// More than any body.
const LONGEST_BODY: usize = 4 << 20;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its path, with the query.
    pub path: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// The response to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code and its reason phrase.
    pub status: &'static str,
    /// What is said.
    pub body: String,
}

// === impl Response ===

impl Response {
    /// All is well.
    #[must_use]
    pub fn ok() -> Self {
        Self {
            status: "200 OK",
            body: "ok\n".to_owned(),
        }
    }

    /// Something is not.
    #[must_use]
    pub fn unavailable(why: impl std::fmt::Display) -> Self {
        Self {
            status: "503 Service Unavailable",
            body: format!("{why}\n"),
        }
    }

    /// An object, for clients that read JSON.
    #[must_use]
    pub fn json(object: &serde_json::Value) -> Self {
        Self {
            status: "200 OK",
            body: object.to_string(),
        }
    }

    /// There is nothing.
    #[must_use]
    pub fn not_found(path: &str) -> Self {
        Self {
            status: "404 Not Found",
            body: format!("{path}\n"),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, body } = self;
        let length = body.len();
        let kind = if body.starts_with('{') {
            "application/json"
        } else {
            "text/plain"
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// Serves a port until the process ends. `response` gets the requested path.
///
/// It runs on a [`LocalSet`].
pub async fn forever<F>(listener: TcpListener, tls: Arc<ServerConfig>, response: F) -> Result<()>
where
    F: AsyncFn(&str) -> Response + Clone + 'static,
{
    let of_path = async move |request: Request| response(&request.path).await;
    requests(listener, tls, of_path).await
}

/// The same with whole requests.
pub async fn requests<F>(listener: TcpListener, tls: Arc<ServerConfig>, response: F) -> Result<()>
where
    F: AsyncFn(Request) -> Response + Clone + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        let (tls, response) = (Arc::clone(&tls), response.clone());
        tokio::task::spawn_local(async move {
            // The client has disconnected, or sent an invalid request: no other client is affected.
            drop(timeout(PATIENCE, connection(stream, tls, response)).await);
        });
    }
}

/// Runs servers on one thread.
pub async fn local<T>(work: impl Future<Output = T>) -> T {
    LocalSet::new().run_until(work).await
}

async fn connection<F>(stream: TcpStream, tls: Arc<ServerConfig>, response: F) -> Result<()>
where
    F: AsyncFn(Request) -> Response,
{
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0] == HANDSHAKE {
        let stream = TlsAcceptor::from(tls).accept(stream).await?;
        return exchange(stream, response).await;
    }
    exchange(stream, response).await
}

async fn exchange<S, F>(mut stream: S, response: F) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: AsyncFn(Request) -> Response,
{
    let (head, mut body) = head(&mut stream).await?;
    let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
    let length = length(&head).min(LONGEST_BODY);
    let read = body.len();
    if read < length {
        body.resize(length, 0);
        stream.read_exact(&mut body[read..]).await?;
    }
    let response = response(Request { path, body }).await;
    stream.write_all(&response.bytes()).await?;
    stream.shutdown().await
}

/// The lines of a request up to the first empty one, and what was read of the body.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        if let Some(end) = head.windows(4).position(|end| end == b"\r\n\r\n") {
            let body = head.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&head).into_owned(), body));
        }
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await?;
        if read == 0 || head.len() > LONGEST_HEAD {
            return Err(Error::other("this is no request"));
        }
        head.extend_from_slice(&piece[..read]);
    }
}

/// The length of the body.
fn length(head: &str) -> usize {
    let found = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())
            .flatten()
    });
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> String {
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut said = Vec::new();
        drop(stream.read_to_end(&mut said).await);
        String::from_utf8(said).unwrap()
    }

    #[tokio::test]
    async fn one_port_serves_plain_http_and_tls() {
        crate::tls::install_provider();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let client = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        local(async move {
            let echo = async |path: &str| Response::unavailable(path);
            tokio::task::spawn_local(forever(listener, Arc::new(server), echo));
            let plain = ask(TcpStream::connect(address).await.unwrap()).await;
            let name = "localhost".try_into().unwrap();
            let stream = TcpStream::connect(address).await.unwrap();
            let connector = tokio_rustls::TlsConnector::from(Arc::new(client));
            let secure = ask(connector.connect(name, stream).await.unwrap()).await;
            for said in [plain, secure] {
                assert!(said.starts_with("HTTP/1.1 503 "), "{said}");
                assert!(said.ends_with("/readyz\n"), "{said}");
            }
        })
        .await;
    }
}
