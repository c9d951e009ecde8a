//! An HTTPS server for helpers that other pods call: small requests, and responses from memory.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use support::accept;
use support::shutdown::Drain;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::error::Usage;

/// Content type of text.
pub(crate) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Timeout of a TLS handshake and of a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request's body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection is used for further requests.
const IDLE_TIMEOUT: Duration = Duration::from_mins(2);
/// How long the last response of a connection may take.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);
/// The largest body of a request.
const LARGEST_BODY: usize = 64 << 10;
/// The most connections.
const CONNECTIONS: usize = 256;

/// Whether the client has shown a certificate of the trusted authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Verified,
    Unknown,
}

/// Answers requests.
pub(crate) trait Handler: Send + Sync + 'static {
    fn respond(
        &self,
        request: Request<Bytes>,
        peer: Peer,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Reads the serving certificate, and the authority of clients if there is one. They are never reloaded, because new ones
/// roll out new pods.
pub(crate) fn tls(
    certificate: &Path,
    key: &Path,
    clients: Option<&Path>,
) -> Result<ServerConfig, Usage> {
    let chain = certificates(certificate)?;
    let private =
        PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error.to_string()))?;
    let config = match clients {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(certificates(path)?);
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
                .allow_unauthenticated()
                .build()
                .map_err(|error| unusable(path, &error.to_string()))?;
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    config
        .with_single_cert(chain, private)
        .map_err(|error| unusable(certificate, &error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Usage> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(path, &error.to_string()))
}

fn unusable(path: &Path, problem: &str) -> Usage {
    Usage {
        message: format!("failed to use {}: {problem}", path.display()),
    }
}

/// A response with a text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    support::admin::response(status, TEXT, text)
}

/// Serves until the drain begins. Requests that are being answered then are answered.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: ServerConfig,
    handler: Arc<impl Handler>,
    drain: Drain,
) {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let permits = Some(Arc::new(Semaphore::new(CONNECTIONS)));
    let mut until = drain.clone();
    let shutdown = async move { until.begun().await };
    accept::run(listener, permits, shutdown, |stream, permit| {
        let (acceptor, handler) = (acceptor.clone(), Arc::clone(&handler));
        let drain = drain.clone();
        tokio::spawn(async move {
            connection(stream, acceptor, handler, drain).await;
            drop(permit);
        });
    })
    .await;
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    handler: Arc<impl Handler>,
    mut drain: Drain,
) {
    // Failed handshakes are not logged, because clients can cause them at will.
    let Ok(Ok(stream)) = timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    let peer = match stream.get_ref().1.peer_certificates() {
        Some(_) => Peer::Verified,
        None => Peer::Unknown,
    };
    let service = service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(respond(&*handler, request, peer).await) }
    });
    let serving = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        _ = serving.as_mut() => return,
        () = tokio::time::sleep(IDLE_TIMEOUT) => {}
        () = drain.begun() => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = timeout(WRITE_TIMEOUT, serving).await;
}

async fn respond(
    handler: &impl Handler,
    request: Request<Incoming>,
    peer: Peer,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, LARGEST_BODY);
    match timeout(READ_TIMEOUT, body.collect()).await {
        Ok(Ok(body)) => {
            let request = Request::from_parts(head, body.to_bytes());
            handler.respond(request, peer).await
        }
        Ok(Err(_)) => text(
            StatusCode::BAD_REQUEST,
            "the body is too large or incomplete\n",
        ),
        Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::ClientConfig;
    use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;

    use super::*;

    /// Says who asks.
    struct Echo;

    impl Handler for Echo {
        async fn respond(&self, request: Request<Bytes>, peer: Peer) -> Response<Full<Bytes>> {
            let length = request.body().len();
            text(StatusCode::OK, format!("{peer:?} sent {length}"))
        }
    }

    fn authority() -> (rcgen::Certificate, Issuer<'static, KeyPair>) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate, Issuer::new(params, key))
    }

    /// Sends a request with a certificate of an authority, and returns the response, if there is one.
    async fn sent(
        address: std::net::SocketAddr,
        server: CertificateDer<'static>,
        issuer: Option<&Issuer<'static, KeyPair>>,
    ) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(server).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match issuer {
            None => config.with_no_client_auth(),
            Some(issuer) => {
                let key = KeyPair::generate().unwrap();
                let params = CertificateParams::default();
                let certificate = params.signed_by(&key, issuer).unwrap();
                let key = PrivatePkcs8KeyDer::from(key.serialize_der());
                let chain = vec![certificate.der().clone()];
                config.with_client_auth_cert(chain, key.into()).unwrap()
            }
        };
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let mut stream = connector.connect(name, stream).await?;
        let request =
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok(response)
    }

    #[tokio::test]
    async fn only_certificates_of_the_authority_verify_a_client() {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let (trusted, issuer) = authority();
        let (_, foreign) = authority();
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let tls = tls(
            &file("tls.crt", own.cert.pem()),
            &file("tls.key", own.signing_key.serialize_pem()),
            Some(&file("ca.crt", trusted.pem())),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_signal, drain) = support::shutdown::channel();
        tokio::spawn(serve(listener, tls.unwrap(), Arc::new(Echo), drain));
        for (issuer, expected) in [
            (None, Some("Unknown sent 3")),
            (Some(&issuer), Some("Verified sent 3")),
            (Some(&foreign), None),
        ] {
            let response = sent(address, own.cert.der().clone(), issuer).await;
            let response = response.unwrap_or_default();
            match expected {
                Some(text) => assert!(response.contains(text), "{text}: {response}"),
                None => assert_eq!(response, ""),
            }
        }
    }

    #[test]
    fn unusable_files_are_named() {
        let missing = Path::new("/does/not/exist.crt");
        let error = tls(missing, missing, None).unwrap_err();
        assert!(error.message.contains("/does/not/exist.crt"), "{error}");
    }
}
