//! Serves HTTP clients: CONNECT, and requests with an absolute URL.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use support::error::chain;
use support::shutdown::Drain;
use tokio::net::{TcpListener, TcpStream};

use super::forward::{self, Requested};
use crate::konnectivity::dialer::{self, Connection, Dialer, Reason};
use crate::konnectivity::http_proxy::{self, ProxyTls};
use crate::konnectivity::proxies::{Proxies, ProxyUrl, Scheme};
use crate::konnectivity::relay::{AtEnd, relay};
use crate::konnectivity::server::{self, Failures, Slot};
use crate::konnectivity::stream::BoxedIo;
use crate::konnectivity::target::Target;

/// Timeout of the head of a request, and of an idle connection.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
/// Maximum size of the head of a request or a response.
const MAX_HEAD: usize = 64 * 1024;
/// Timeout of the head of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(10);
/// Timeout for the client's side of a tunnel after the response.
const SWITCH_TIMEOUT: Duration = Duration::from_secs(10);

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// The proxy.
pub(super) struct Proxy {
    dialer: Dialer,
    /// The proxies of the hosted cluster.
    proxies: Proxies,
    /// TLS with them.
    tls: ProxyTls,
    failures: Failures,
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Invalid(#[from] forward::Invalid),
    #[error(transparent)]
    Dial(#[from] dialer::Error),
    #[error(transparent)]
    Proxy(#[from] http_proxy::Error),
    #[error("failed to get a response from {target}: check the server")]
    Exchange {
        target: Target,
        source: hyper::Error,
    },
    #[error("failed to get a response from {0}: no answer within {RESPONSE_TIMEOUT:?}")]
    TimedOut(Target),
}

// === impl Proxy ===

impl Proxy {
    /// A proxy that connects with this dialer, through these proxies.
    pub(super) fn new(dialer: Dialer, proxies: Proxies) -> Self {
        Self {
            dialer,
            proxies,
            tls: ProxyTls::default(),
            failures: Failures::default(),
        }
    }

    /// Trusts other authorities of proxies.
    #[cfg(test)]
    pub(super) fn with_tls(self, tls: ProxyTls) -> Self {
        Self { tls, ..self }
    }

    /// Serves clients until the shutdown.
    pub(super) async fn run(self, listener: TcpListener, drain: Drain) {
        let proxy = Arc::new(self);
        server::run(listener, drain, |stream, slot| {
            Arc::clone(&proxy).connection(stream, slot)
        })
        .await;
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, slot: Arc<Slot>) {
        let mut drain = slot.drain.clone();
        let service = service_fn(move |request| {
            let (proxy, slot) = (Arc::clone(&self), Arc::clone(&slot));
            async move { Ok::<_, Infallible>(proxy.respond(request, slot).await) }
        });
        let serving = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_header_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut serving = std::pin::pin!(serving);
        // A client that disconnects is not an error.
        tokio::select! {
            _ = serving.as_mut() => return,
            () = drain.begun() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }

    async fn respond(&self, request: Request<Incoming>, slot: Arc<Slot>) -> Response<Body> {
        let requested = forward::requested(request.method(), request.uri());
        let response = match requested {
            Ok(Requested::Tunnel(target)) => self.tunnel(&target, request, slot).await,
            Ok(Requested::Forward(target)) => self.forward(&target, request).await,
            Err(error) => Err(error.into()),
        };
        response.unwrap_or_else(|error| {
            let text = chain(&error);
            if !matches!(error, Error::Invalid(_)) {
                self.failures.log(&text);
            }
            refusal(error.status(), text)
        })
    }

    /// Connects to the target, then turns the connection of the client into a tunnel.
    async fn tunnel(
        &self,
        target: &Target,
        request: Request<Incoming>,
        slot: Arc<Slot>,
    ) -> Result<Response<Body>, Error> {
        let connection = match self.proxy_of_tunnel(target) {
            None => self.dialer.dial(target).await?,
            Some(proxy) => {
                let Connection { io, .. } = self.dialer.dial(&proxy.target).await?;
                Connection {
                    io: self.tls.connect(io, proxy, target).await?,
                    at_end: AtEnd::KeepOpen,
                }
            }
        };
        let client = hyper::upgrade::on(request);
        tokio::spawn(async move {
            join(client, connection).await;
            drop(slot);
        });
        Ok(Response::new(body("")))
    }

    /// Cloud APIs that are reached from the management cluster do not use the proxy of the hosted cluster.
    pub(super) fn proxy_of_tunnel(&self, target: &Target) -> Option<&ProxyUrl> {
        let proxy = self.proxies.find(Scheme::Https, target);
        proxy.filter(|_| !self.dialer.cloud_apis.contains(&target.host))
    }

    /// Sends one request on a connection of its own.
    async fn forward(
        &self,
        target: &Target,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Error> {
        let proxy = self.proxies.find(Scheme::Http, target);
        let io = self.open(target, proxy).await?;
        let (mut parts, body) = request.into_parts();
        forward::rewrite(&mut parts, target, proxy);
        let exchange = exchange(io, Request::from_parts(parts, body));
        let response = match tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await {
            Ok(response) => response.map_err(|source| Error::Exchange {
                target: target.clone(),
                source,
            })?,
            Err(_) => return Err(Error::TimedOut(target.clone())),
        };
        let (mut parts, body) = response.into_parts();
        forward::strip_hop_by_hop(&mut parts.headers);
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    async fn open(&self, target: &Target, proxy: Option<&ProxyUrl>) -> Result<BoxedIo, Error> {
        let Some(proxy) = proxy else {
            return Ok(self.dialer.dial(target).await?.io);
        };
        let Connection { io, .. } = self.dialer.dial(&proxy.target).await?;
        Ok(self.tls.wrap(io, proxy).await?)
    }
}

/// Sends a request. The connection ends with the body of the response.
async fn exchange(
    io: BoxedIo,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = client::conn::http1::Builder::new()
        .max_header_size(MAX_HEAD)
        .handshake(TokioIo::new(io))
        .await?;
    // Its errors are those of the request or of the body.
    tokio::spawn(connection);
    sender.send_request(request).await
}

async fn join(client: OnUpgrade, connection: Connection) {
    // A client that disconnects is not an error.
    if let Ok(Ok(client)) = tokio::time::timeout(SWITCH_TIMEOUT, client).await {
        let _ = relay(TokioIo::new(client), connection.io, connection.at_end).await;
    }
}

fn body(text: impl Into<Bytes>) -> Body {
    let full = Full::new(text.into());
    full.map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

fn refusal(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(body(text + "\n"));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

// === impl Error ===

impl Error {
    /// The status of the response.
    fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Dial(error) => match error.reason() {
                Reason::Unresolved | Reason::Refused => StatusCode::BAD_GATEWAY,
                Reason::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                Reason::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            },
            Self::Proxy(_) | Self::Exchange { .. } => StatusCode::BAD_GATEWAY,
            Self::TimedOut(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}
