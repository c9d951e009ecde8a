//! HTTPS for machines.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use support::accept::{self, Accept};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::admission::{Admission, Limits, Permit};
use super::cache::Cache;
use super::metrics::Metrics;
use super::request::{self, Served};
use crate::error::Usage;

/// Timeout of a TLS handshake and of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a connection; long enough for slow links.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Connection limits. Behind a proxy all machines are one peer, so its limit is high.
pub(super) const LIMITS: Limits = Limits {
    total: 512,
    per_peer: 256,
};

/// The HTTPS server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) cache: Arc<Cache>,
    pub(super) metrics: Metrics,
    /// Queue of Secret names whose payload was fetched.
    pub(super) reached: mpsc::Sender<String>,
    /// Admission of connections.
    pub(super) admission: Admission,
}

/// Accepts connections with the peer address.
struct Machines(TcpListener);

/// Reads the certificate. It is never reloaded, because a new one rolls out new pods.
pub(super) fn tls(certificate: &Path, key: &Path) -> Result<ServerConfig, Usage> {
    let unusable = |path: &Path, problem: String| Usage {
        message: format!("failed to use {}: {problem}", path.display()),
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(certificate, error.to_string()));
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, error.to_string()))?;
    ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain?, private)
        .map_err(|error| unusable(certificate, error.to_string()))
}

impl Accept for Machines {
    type Connection = (TcpStream, SocketAddr);

    async fn accept(&self) -> io::Result<Self::Connection> {
        self.0.accept().await
    }
}

// === impl Server ===

impl Server {
    /// Runs the server.
    pub(super) async fn run(self, listener: TcpListener, tls: ServerConfig) {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let machines = Machines(listener);
        accept::run(
            machines,
            None,
            std::future::pending(),
            |(stream, from), _| {
                self.serve(stream, from.ip(), acceptor.clone());
            },
        )
        .await;
    }

    /// Serves a connection in a new task, if it is admitted.
    fn serve(&self, stream: TcpStream, from: IpAddr, acceptor: TlsAcceptor) {
        let Some((permit, lost)) = self.admission.admit(from) else {
            self.metrics.dropped.inc();
            return;
        };
        let server = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = server.connection(stream, acceptor, &permit) => {}
                _ = lost => {
                    server.metrics.dropped.inc();
                }
            }
        });
    }

    async fn connection(&self, stream: TcpStream, acceptor: TlsAcceptor, permit: &Permit) {
        // Failed handshakes are not logged, because clients can cause them at will.
        let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await
        else {
            return;
        };
        let service = service_fn(|request| {
            let response = self.respond(&request, permit);
            async { Ok::<_, Infallible>(response) }
        });
        // Machines send one request: without keep-alive the slot is released after the response.
        let serving = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let _ = tokio::time::timeout(TIMEOUT, serving).await;
    }

    fn respond(&self, request: &Request<Incoming>, permit: &Permit) -> Response<Full<Bytes>> {
        let response = request::handle(request, &self.cache);
        match response.served {
            Served::Payload(entry) => {
                permit.keep();
                tracing::info!(pool = entry.pool, secret = entry.secret, "Payload fetched");
                self.metrics.served(&entry.pool);
                // If the queue is full, the request is not recorded.
                let _ = self.reached.try_send(entry.secret);
            }
            Served::Missed => {
                self.metrics.missed.inc();
            }
            Served::Other => {}
        }
        response.response.map(Full::new)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use prometheus_client::registry::Registry;
    use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;

    use super::super::cache::Entry;
    use super::*;

    /// Starts a server with one payload, and returns its address and a client that trusts it.
    async fn started(limits: Limits) -> (SocketAddr, TlsConnector) {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        let cache = Cache::default();
        let entry = Entry {
            secret: "token-a".to_owned(),
            pool: "clusters/workers".to_owned(),
            payload: Bytes::from_static(b"the payload"),
        };
        cache.put(&["0b7c"], &entry);
        let server = Server {
            cache: Arc::new(cache),
            metrics: Metrics::new(&mut Registry::default()),
            reached: mpsc::channel(1).0,
            admission: Admission::new(limits),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(server.run(listener, tls));
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (address, TlsConnector::from(Arc::new(client)))
    }

    async fn fetch(address: SocketAddr, connector: &TlsConnector) -> String {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let token = STANDARD.encode("0b7c");
        let request =
            format!("GET /ignition HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    /// Finding T18: idle connections occupied all slots until the head timeout.
    #[tokio::test]
    async fn idle_connections_do_not_block_machines() {
        let limits = Limits {
            total: 8,
            per_peer: 4,
        };
        let (address, connector) = started(limits).await;
        let mut silent = Vec::new();
        for _ in 0..32 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let fetched = tokio::time::timeout(HEAD_TIMEOUT / 2, fetch(address, &connector)).await;
        let response = fetched.unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(response.ends_with("the payload"), "{response}");
        drop(silent);
    }

    #[tokio::test]
    async fn connections_close_after_the_response() {
        let limits = Limits {
            total: 1,
            per_peer: 1,
        };
        let (address, connector) = started(limits).await;
        for _ in 0..3 {
            let response = fetch(address, &connector).await;
            assert!(response.contains("connection: close"), "{response}");
        }
    }
}
