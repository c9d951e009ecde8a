//! Requests to the APIs of clouds, which are outside of the cluster: TLS, the proxy of the environment, deadlines, retries.

mod route;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::error::chain;

pub use route::Route;

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request and its response may take: the largest part over a slow link.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(2);
/// The largest response: they are short.
pub(crate) const LARGEST_RESPONSE: usize = 1 << 20;
/// The pauses between attempts after transient failures.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// A client.
#[derive(Debug, Clone)]
pub struct Http(Client<HttpsConnector<Route>, Full<Bytes>>);

/// No response arrived.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or it broke.
    #[error("the connection failed")]
    Connection(#[source] hyper_util::client::legacy::Error),
    /// The response ended early, or has more bytes than are read.
    #[error("the response is incomplete or too large")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server did not respond in time.
    #[error("no response within {REQUEST_TIMEOUT:?}")]
    Timeout,
    /// The host would get credentials without TLS.
    #[error("the endpoint must have https: credentials would be sent in plain text to {0}")]
    PlainText(String),
    /// A name or a key that cannot be part of a URL or of a header.
    #[error("the request is invalid")]
    Request(#[from] http::Error),
}

/// Connects with and without TLS, by the proxy of the environment. Servers have ten seconds to accept a connection.
pub fn connector(roots: RootCertStore) -> HttpsConnector<Route> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider knows the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(Route::new(tcp, Matcher::from_env()))
}

// === impl Http ===

impl Http {
    /// A client that trusts the authorities of the image, and uses the proxy of the environment.
    pub fn new() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self(Client::builder(TokioExecutor::new()).build(connector(roots)))
    }

    /// Sends a request until there is a response that is not transient, or no attempt is left. `build` is called for each
    /// attempt, because signatures have the time.
    pub async fn send(
        &self,
        build: impl Fn() -> http::Result<Request<Bytes>>,
    ) -> Result<Response<Bytes>, Error> {
        for pause in PAUSES {
            match self.attempt(build()?).await {
                Ok(response) if !is_transient(response.status()) => return Ok(response),
                Ok(response) => {
                    let status = response.status().as_u16();
                    tracing::warn!(status, "Retrying a request");
                }
                Err(error @ Error::PlainText(_)) => return Err(error),
                Err(error) => {
                    let error = chain(&error);
                    tracing::warn!(error, "Retrying a request");
                }
            }
            tokio::time::sleep(pause).await;
        }
        self.attempt(build()?).await
    }

    /// Sends a request once: its caller decides what is repeated.
    pub async fn attempt(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        self.attempt_within(request, LARGEST_RESPONSE).await
    }

    /// The same with another limit of the response, in bytes.
    pub async fn attempt_within(
        &self,
        request: Request<Bytes>,
        largest: usize,
    ) -> Result<Response<Bytes>, Error> {
        if !keeps_secrets(request.uri()) {
            let host = request.uri().host().unwrap_or_default();
            return Err(Error::PlainText(host.to_owned()));
        }
        let exchange = async {
            let response = self.0.request(request.map(Full::new)).await;
            let (head, body) = response.map_err(Error::Connection)?.into_parts();
            let body = Limited::new(body, largest).collect().await;
            Ok(Response::from_parts(
                head,
                body.map_err(Error::Body)?.to_bytes(),
            ))
        };
        match timeout(REQUEST_TIMEOUT, exchange).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout),
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a request cannot be read on the network: it is encrypted, or stays on the machine, as do requests to the metadata
/// service of clouds, which has a link-local address and no TLS.
fn keeps_secrets(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback(),
    };
    uri.scheme() == Some(&Scheme::HTTPS) || host.parse().is_ok_and(is_local)
}

fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_sent_encrypted_or_stay_on_the_machine() {
        for (uri, expected) in [
            ("https://s3.us-east-1.amazonaws.com/b", true),
            ("http://s3.us-east-1.amazonaws.com/b", false),
            ("http://169.254.169.254/latest/api/token", true),
            ("http://127.0.0.1:5000/b", true),
            ("http://[::1]:5000/b", true),
            ("http://10.0.0.1/b", false),
            // A name that resolves to loopback now may not do so later.
            ("http://localhost/b", false),
            ("http://127.0.0.1.example.com/b", false),
            ("/b", false),
        ] {
            assert_eq!(keeps_secrets(&uri.parse().unwrap()), expected, "{uri}");
        }
    }

    #[tokio::test]
    async fn plain_text_to_a_remote_host_is_refused() {
        let build = || Request::get("http://s3.example.com/b").body(Bytes::new());
        let error = Http::new().send(build).await.unwrap_err();
        assert!(matches!(error, Error::PlainText(host) if host == "s3.example.com"));
    }
}
