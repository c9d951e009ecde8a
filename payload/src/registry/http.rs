//! HTTP to registries: TLS, redirects, and limits on time and size.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::uri::Scheme;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use support::outbound::{Route, connector};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::limits::{Broken, Limits};

/// How many redirects of one request are followed.
const MOST_REDIRECTS: usize = 5;

/// A client of any registry.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<Route>, Full<Bytes>>,
    plain: BTreeSet<String>,
    pub(super) limits: Limits,
    pub(super) layers: Arc<Semaphore>,
}

/// A response, and whether it is from the requested host.
pub(super) struct Reply {
    pub(super) response: Response<Incoming>,
    /// Whether a redirect led to another host. What that host requests is not the registry's challenge.
    pub(super) is_foreign: bool,
}

/// Measures what a registry sends of a layer, over one window after the other. Only the time that is spent on waiting for
/// the registry counts.
pub(super) struct Pace<'a> {
    limits: &'a Limits,
    waited: Duration,
    received: u64,
}

/// Why a response did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The connection failed or broke.
    #[error("no connection")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A limit of time or rate was broken.
    #[error(transparent)]
    Slow(Broken),
    /// Too many redirects, or one to an invalid location.
    #[error("invalid redirect")]
    Redirect,
    /// The document is too large.
    #[error("more than {0} bytes")]
    TooLarge(usize),
}

/// Why a bundle of certificate authorities is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAuthorities {
    /// The bundle is not PEM.
    #[error("the bundle of certificate authorities is not PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// It is empty.
    #[error("the bundle of certificate authorities contains no certificate")]
    Empty,
    /// One of its entries is not a certificate.
    #[error("the bundle of certificate authorities contains an invalid certificate")]
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
    /// Uses the proxy of the environment; trusts the authorities of the system and of `bundle`; connects to `plain`
    /// without TLS.
    pub(crate) fn new(
        plain: BTreeSet<String>,
        bundle: Option<&[u8]>,
        limits: Limits,
    ) -> Result<Self, InvalidAuthorities> {
        let connector = connector(authorities(bundle)?);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            plain,
            limits,
            layers: Arc::new(Semaphore::new(Limits::LAYERS_AT_ONCE)),
        })
    }

    /// Whether this registry is reached with TLS.
    pub(super) fn scheme(&self, host: &str) -> Scheme {
        if self.plain.contains(host) {
            return Scheme::HTTP;
        }
        Scheme::HTTPS
    }

    /// Sends a GET request and follows redirects. Each request has its own deadline.
    pub(super) async fn get(&self, mut uri: Uri, mut headers: HeaderMap) -> Result<Reply, Failed> {
        let mut is_foreign = false;
        for _ in 0..=MOST_REDIRECTS {
            let request = request(Method::GET, &uri, &headers, Bytes::new())?;
            let response = self.send(request).await?;
            if !is_redirect(response.status()) {
                return Ok(Reply {
                    response,
                    is_foreign,
                });
            }
            let next = redirected(&uri, response.headers()).ok_or(Failed::Redirect)?;
            if next.authority() != uri.authority() {
                // Credentials are for the registry, and not for its storage.
                headers.remove(header::AUTHORIZATION);
                is_foreign = true;
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
        let limit = self.limits.request;
        let response = timeout(limit, self.client.request(request)).await;
        let response = response.map_err(|_| Failed::Slow(Broken::Request(limit)))?;
        response.map_err(|error| Failed::Connection(error.into()))
    }

    /// A whole document of at most `most` bytes, within the deadline of a request.
    pub(super) async fn document(&self, body: Incoming, most: usize) -> Result<Bytes, Failed> {
        let limit = self.limits.request;
        let whole = timeout(limit, whole(body, most)).await;
        whole.map_err(|_| Failed::Slow(Broken::Request(limit)))?
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

/// Where a redirect leads; never from TLS to plain HTTP.
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
    // A system without authorities is not an error: the bundle may be the only source.
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

/// The next chunk of a body; nothing at its end.
async fn chunk(body: &mut Incoming) -> Result<Option<Bytes>, Failed> {
    loop {
        match body.frame().await {
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

async fn whole(mut body: Incoming, most: usize) -> Result<Bytes, Failed> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = chunk(&mut body).await? {
        if bytes.len() + chunk.len() > most {
            return Err(Failed::TooLarge(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

// === impl Pace ===

impl<'a> Pace<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            waited: Duration::ZERO,
            received: 0,
        }
    }

    /// The next chunk of a layer; nothing at its end. Fails at the end of a window in which too little arrived.
    pub(super) async fn chunk(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, Failed> {
        loop {
            let begun = Instant::now();
            let rest = self.limits.request.saturating_sub(self.waited);
            let next = timeout(rest, chunk(body)).await;
            self.waited += begun.elapsed();
            if let Ok(Ok(Some(bytes))) = &next {
                self.received += bytes.len() as u64;
            }
            if self.waited >= self.limits.request {
                self.next_window()?;
            }
            if let Ok(next) = next {
                return next;
            }
        }
    }

    fn next_window(&mut self) -> Result<(), Failed> {
        if self.received < self.limits.least_in_window() {
            return Err(Failed::Slow(Broken::Rate {
                rate: self.limits.rate,
                window: self.limits.request,
            }));
        }
        (self.waited, self.received) = (Duration::ZERO, 0);
        Ok(())
    }
}

/// Reads from a channel, on a blocking thread.
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
            assert!(Http::new(BTreeSet::new(), Some(bundle), Limits::default()).is_err());
        }
    }
}
