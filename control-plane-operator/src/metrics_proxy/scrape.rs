//! Requests to the endpoint resolver and to pods.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::timeout;

use super::config::{Component, EndpointResolver};
use super::exposition::host;
use crate::endpoint_resolver::{Answer, Question, Target};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest response.
const LARGEST_RESPONSE: usize = 64 << 20;

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The URL is invalid.
    #[error("invalid URL {url:?}")]
    Url {
        url: String,
        source: http::uri::InvalidUri,
    },
    /// The request could not be sent.
    #[error("failed to request {url}")]
    Request { url: String, source: kube::Error },
    /// The response is incomplete or too large.
    #[error("failed to read the response of {url}")]
    Body {
        url: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The response is not the expected one.
    #[error("{url} responded with status {status}")]
    Status { url: String, status: StatusCode },
    /// The request timed out.
    #[error("{url} did not respond in time")]
    Timeout { url: String },
}

/// A client of the endpoint resolver.
pub(super) struct Resolver {
    url: String,
    client: kube::Client,
}

/// Files of a TLS connection.
#[derive(Default)]
struct Tls<'a> {
    authority: Option<&'a PathBuf>,
    certificate: Option<&'a PathBuf>,
    key: Option<&'a PathBuf>,
    server_name: Option<&'a str>,
}

// === impl Resolver ===

impl Resolver {
    pub(super) fn new(config: &EndpointResolver) -> Result<Self, Error> {
        let tls = Tls {
            authority: config.ca_file.as_ref(),
            ..Tls::default()
        };
        Ok(Self {
            client: client(&config.url, &tls)?,
            url: config.url.clone(),
        })
    }

    /// The ready pods with these labels.
    pub(super) async fn pods(
        &self,
        selector: &BTreeMap<String, String>,
    ) -> Result<Vec<Target>, Error> {
        let question = Question {
            selector: selector.clone(),
        };
        let question = serde_json::json!(question).to_string().into_bytes();
        let request = Request::post("/resolve").body(Body::from(question));
        let (status, body) = send(&self.client, &self.url, request).await?;
        let url = self.url.clone();
        match status {
            StatusCode::NOT_FOUND => Ok(Vec::new()),
            StatusCode::OK => {
                let answer: Result<Answer, _> = serde_json::from_slice(&body);
                let answer = answer.map_err(|source| Error::Body {
                    url,
                    source: source.into(),
                })?;
                Ok(answer.pods)
            }
            status => Err(Error::Status { url, status }),
        }
    }
}

/// The metrics of a pod. Files are read each time, because certificates are renewed.
pub(super) async fn pod(component: &Component, pod: &Target) -> Result<String, Error> {
    let scheme = component.metrics_scheme.as_str();
    let port = component.metrics_port;
    let url = format!("{scheme}://{}:{port}", host(&pod.ip));
    let tls = Tls {
        authority: component.ca_file.as_ref(),
        certificate: component.cert_file.as_ref(),
        key: component.key_file.as_ref(),
        server_name: component.tls_server_name.as_deref(),
    };
    let client = client(&url, &tls)?;
    let request = Request::get(component.metrics_path.as_str()).body(Body::empty());
    let (status, body) = send(&client, &url, request).await?;
    if status != StatusCode::OK {
        return Err(Error::Status { url, status });
    }
    String::from_utf8(body.into()).map_err(|source| Error::Body {
        url,
        source: source.into(),
    })
}

async fn send(
    client: &kube::Client,
    url: &str,
    request: http::Result<Request<Body>>,
) -> Result<(StatusCode, Bytes), Error> {
    let url = || url.to_owned();
    let failed = |source| Error::Request { url: url(), source };
    let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
    let exchange = async {
        let response = client.send(request).await.map_err(failed)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST_RESPONSE).collect();
        let body = body
            .await
            .map_err(|source| Error::Body { url: url(), source })?;
        Ok((status, body.to_bytes()))
    };
    match timeout(TIMEOUT, exchange).await {
        Ok(result) => result,
        Err(_) => Err(Error::Timeout { url: url() }),
    }
}

fn client(url: &str, tls: &Tls<'_>) -> Result<kube::Client, Error> {
    let uri: Uri = url.parse().map_err(|source| Error::Url {
        url: url.to_owned(),
        source,
    })?;
    let mut config = kube::Config::new(uri);
    config.root_cert = tls.authority.map(|path| authorities(path));
    config.tls_server_name = tls.server_name.map(str::to_owned);
    if let (Some(certificate), Some(key)) = (readable(tls.certificate), readable(tls.key)) {
        config.auth_info.client_certificate = Some(certificate);
        config.auth_info.client_key = Some(key);
    }
    config.connect_timeout = Some(TIMEOUT);
    config.default_retry = false;
    kube::Client::try_from(config).map_err(|source| Error::Request {
        url: url.to_owned(),
        source,
    })
}

/// The file's path, unless it does not exist: its Secret is optional.
fn readable(path: Option<&PathBuf>) -> Option<String> {
    let path = path.filter(|path| path.exists())?;
    Some(path.display().to_string())
}

/// The certificates of a file. Without one, no server is trusted.
fn authorities(path: &Path) -> Vec<Vec<u8>> {
    let pem = std::fs::read(path).unwrap_or_default();
    let certificates = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok);
    certificates
        .map(|certificate| certificate.to_vec())
        .collect()
}
