//! Speaks HTTP to registries: TLS, redirects, and limits to what is read.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use super::route::Route;

/// How long a registry may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long it may be silent: before it answers, and within an answer.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// How often a request is sent on to another place.
const MOST_REDIRECTS: usize = 5;

/// A client of any registry.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<Route>, Full<Bytes>>,
    plain: BTreeSet<String>,
}

/// Why an answer did not come.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// No connection, or one that broke.
    #[error("no connection")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nothing came any more.
    #[error("no answer within {} seconds", SILENT_FOR.as_secs())]
    Silent,
    /// Sent on too often, or to a place that makes no sense.
    #[error("it redirects to where nothing can be read")]
    Redirect,
    /// More came than is taken.
    #[error("it sends more than {0} bytes")]
    TooLarge(usize),
}

/// Why authorities cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuthorities {
    /// The bundle is not PEM.
    #[error("the bundle of certificate authorities is not PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// Nothing is in it.
    #[error("the bundle of certificate authorities holds no certificate")]
    Empty,
    /// One of them is no certificate.
    #[error("the bundle of certificate authorities holds something that is not a certificate")]
    Certificate(#[source] rustls::Error),
}

// === impl Http ===

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Http");
        debug.field("plain", &self.plain).finish_non_exhaustive()
    }
}

impl Http {
    /// Goes through the proxy that the environment names; trusts what the system trusts and the authorities of `bundle`; speaks to `plain` without TLS.
    pub(crate) fn new(
        plain: BTreeSet<String>,
        bundle: Option<&[u8]>,
    ) -> Result<Self, InvalidAuthorities> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let config = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider knows the default protocol versions")
            .with_root_certificates(authorities(bundle)?)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Route::new(tcp, Matcher::from_env()));
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            plain,
        })
    }

    /// How this registry is spoken to.
    pub(super) fn scheme(&self, host: &str) -> Scheme {
        if self.plain.contains(host) {
            return Scheme::HTTP;
        }
        Scheme::HTTPS
    }

    /// Sends a GET request, and follows where it is sent on to.
    pub(super) async fn get(
        &self,
        mut uri: Uri,
        mut headers: HeaderMap,
    ) -> Result<Response<Incoming>, Failed> {
        for _ in 0..=MOST_REDIRECTS {
            let request = request(Method::GET, &uri, &headers, Bytes::new())?;
            let response = self.send(request).await?;
            if !is_redirect(response.status()) {
                return Ok(response);
            }
            let next = redirected(&uri, response.headers()).ok_or(Failed::Redirect)?;
            if next.authority() != uri.authority() {
                // Who asks is the registry's business, and not that of where it keeps things.
                headers.remove(header::AUTHORIZATION);
            }
            uri = next;
        }
        Err(Failed::Redirect)
    }

    /// Sends a form, once.
    pub(super) async fn post_form(
        &self,
        uri: &Uri,
        form: String,
    ) -> Result<Response<Incoming>, Failed> {
        let kind = header::HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind)]);
        self.send(request(Method::POST, uri, &headers, form.into())?)
            .await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        let response = timeout(SILENT_FOR, self.client.request(request)).await;
        let response = response.map_err(|_| Failed::Silent)?;
        response.map_err(|error| Failed::Connection(error.into()))
    }
}

fn request(
    method: Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failed> {
    let request = Request::builder().method(method).uri(uri.clone());
    let mut request = request
        .body(Full::new(body))
        .map_err(|_| Failed::Redirect)?;
    request.headers_mut().clone_from(headers);
    let agent = header::HeaderValue::from_static("hypershift");
    request.headers_mut().insert(header::USER_AGENT, agent);
    Ok(request)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where an answer sends a request; never from TLS to none.
fn redirected(from: &Uri, headers: &HeaderMap) -> Option<Uri> {
    let location = headers.get(header::LOCATION)?.to_str().ok()?;
    let to: Uri = location.parse().ok()?;
    let mut parts = to.into_parts();
    if parts.authority.is_none() {
        parts.authority = from.authority().cloned();
        parts.scheme = from.scheme().cloned();
    }
    let safe = from.scheme() != Some(&Scheme::HTTPS) || parts.scheme == Some(Scheme::HTTPS);
    Uri::from_parts(parts).ok().filter(|_| safe)
}

fn authorities(bundle: Option<&[u8]>) -> Result<RootCertStore, InvalidAuthorities> {
    let mut roots = RootCertStore::empty();
    // A system that trusts nobody is no error: the bundle may be all there is.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(bundle) = bundle else {
        return Ok(roots);
    };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let certificates = certificates.map_err(InvalidAuthorities::Pem)?;
    if certificates.is_empty() {
        return Err(InvalidAuthorities::Empty);
    }
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(InvalidAuthorities::Certificate)?;
    }
    Ok(roots)
}

/// The next piece of a body; nothing at its end.
pub(super) async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, Failed> {
    loop {
        let frame = timeout(SILENT_FOR, body.frame()).await;
        match frame.map_err(|_| Failed::Silent)? {
            None => return Ok(None),
            Some(Err(error)) => return Err(Failed::Connection(error.into())),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// A whole body of at most `limit` bytes.
pub(super) async fn whole(mut body: Incoming, limit: usize) -> Result<Bytes, Failed> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunk(&mut body).await? {
        if bytes.len() + chunk.len() > limit {
            return Err(Failed::TooLarge(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

/// What comes through a channel, for a reader on a thread of its own.
#[derive(Debug)]
pub(super) struct ChannelReader {
    receiver: tokio::sync::mpsc::Receiver<Bytes>,
    current: Bytes,
}

// === impl ChannelReader ===

impl ChannelReader {
    pub(super) fn new(receiver: tokio::sync::mpsc::Receiver<Bytes>) -> Self {
        Self {
            receiver,
            current: Bytes::new(),
        }
    }
}

impl io::Read for ChannelReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(next) => self.current = next,
                None => return Ok(0),
            }
        }
        let length = self.current.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.current.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_never_leave_tls() {
        for (from, location, expected) in [
            (
                "https://a.example.com/v2/x",
                "/v2/y",
                Some("https://a.example.com/v2/y"),
            ),
            (
                "https://a.example.com/v2/x",
                "https://b.example.com/y?z=1",
                Some("https://b.example.com/y?z=1"),
            ),
            (
                "https://a.example.com/v2/x",
                "http://a.example.com/v2/x",
                None,
            ),
            (
                "http://a.example.com/v2/x",
                "http://b.example.com/",
                Some("http://b.example.com/"),
            ),
            (
                "http://a.example.com/v2/x",
                "ftp://b.example.com/",
                Some("ftp://b.example.com/"),
            ),
            ("https://a.example.com/v2/x", "::", None),
        ] {
            let headers = HeaderMap::from_iter([(header::LOCATION, location.parse().unwrap())]);
            let to = redirected(&from.parse().unwrap(), &headers).map(|uri| uri.to_string());
            assert_eq!(to.as_deref(), expected, "{from} {location}");
        }
    }

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        for bundle in [
            b"".as_slice(),
            b"no PEM",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(Http::new(BTreeSet::new(), Some(bundle)).is_err());
        }
    }
}
