//! HTTPS for machines.

use std::convert::Infallible;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

use super::cache::Cache;
use super::metrics::Metrics;
use super::request::{self, Served};
use crate::error::Usage;

/// How long a handshake, or a request's head, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when the system has nothing to accept a connection with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections at once.
const CONNECTIONS: usize = 512;

/// What is served, and who hears of it.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) cache: Arc<Cache>,
    pub(super) metrics: Metrics,
    /// Names of Secrets whose payload was fetched.
    pub(super) reached: mpsc::Sender<String>,
}

/// Reads the certificate. A new one comes with a new pod: its Secret is part of the pod's hash.
pub(super) fn tls(certificate: &Path, key: &Path) -> Result<ServerConfig, Usage> {
    let unusable = |path: &Path, problem: String| Usage {
        message: format!("{} cannot be used: {problem}", path.display()),
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

// === impl Server ===

impl Server {
    /// Serves, for ever.
    pub(super) async fn run(self, listener: TcpListener, tls: ServerConfig) {
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (server, acceptor) = (self.clone(), acceptor.clone());
                    tokio::spawn(async move {
                        server.connection(stream, acceptor).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "Connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, acceptor: TlsAcceptor) {
        // Probes and scanners hang up in the middle: that is nobody's business.
        let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await else {
            return;
        };
        let service = service_fn(|request| {
            let answer = self.answer(&request);
            async { Ok::<_, Infallible>(answer) }
        });
        let serving = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service);
        let _ = serving.await;
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let answer = request::answer(request, &self.cache);
        match answer.served {
            Served::Payload(entry) => {
                tracing::info!(pool = entry.pool, secret = entry.secret, "Payload fetched");
                self.metrics.served(&entry.pool);
                // When many come at once, the first of them tell of all.
                let _ = self.reached.try_send(entry.secret);
            }
            Served::Missed => {
                self.metrics.missed.inc();
            }
            Served::Other => {}
        }
        answer.response.map(Full::new)
    }
}
