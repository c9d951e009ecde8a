//! The server for probes and metrics: `/livez`, `/readyz`, `/metrics`.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpStream};

use crate::accept;
use crate::args::Address;
use crate::health::Health;

/// Limit for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The text format of `OpenMetrics`.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What probes and scrapes are answered with.
pub trait Endpoints: Send + Sync + 'static {
    /// The failures of liveness.
    fn liveness(&self) -> Vec<String> {
        Vec::new()
    }

    /// The failures of readiness.
    fn readiness(&self) -> Vec<String>;

    /// The metrics, in the text format of `OpenMetrics`.
    fn metrics(&self) -> String;
}

/// Serves health and metrics of a program.
#[derive(Debug)]
pub struct Admin {
    /// Liveness and readiness.
    pub health: Arc<Health>,
    /// The metrics.
    pub registry: Registry,
}

/// Opens the listener.
pub async fn listen(address: Address) -> io::Result<TcpListener> {
    match address {
        Address::One(address) => TcpListener::bind(address).await,
        // Without IPv6 on the machine, only IPv4 is left.
        Address::All(port) => {
            match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
                Ok(listener) => Ok(listener),
                Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
            }
        }
    }
}

/// Serves probes and metrics, until dropped.
pub async fn serve(endpoints: impl Endpoints, listener: TcpListener) {
    let endpoints = Arc::new(endpoints);
    accept::run(listener, None, std::future::pending(), |stream, _| {
        tokio::spawn(serve_connection(Arc::clone(&endpoints), stream));
    })
    .await;
}

async fn serve_connection(endpoints: Arc<impl Endpoints>, stream: TcpStream) {
    let service = service_fn(|request| {
        let response = answer(&*endpoints, &request);
        async { Ok::<_, Infallible>(response) }
    });
    let serving = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    // A client that disconnects is not an error.
    let _ = serving.await;
}

/// Answers a request for health or metrics.
pub fn answer<B>(endpoints: &impl Endpoints, request: &Request<B>) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = "only GET and HEAD are allowed\n";
        return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
    }
    match request.uri().path() {
        "/livez" | "/healthz" => check(&endpoints.liveness()),
        "/readyz" => check(&endpoints.readiness()),
        "/metrics" => response(StatusCode::OK, OPEN_METRICS, endpoints.metrics()),
        _ => response(
            StatusCode::NOT_FOUND,
            TEXT,
            "not found: use /livez, /readyz or /metrics\n",
        ),
    }
}

// === impl Admin ===

impl Admin {
    /// Serves probes and metrics, until dropped.
    pub async fn serve(self, listener: TcpListener) {
        serve(self, listener).await;
    }
}

impl Endpoints for Admin {
    fn liveness(&self) -> Vec<String> {
        self.health.watchdog().hung()
    }

    fn readiness(&self) -> Vec<String> {
        self.health.problems()
    }

    fn metrics(&self) -> String {
        render(&self.registry)
    }
}

/// Metrics in the text format of `OpenMetrics`.
pub fn render(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)
        .expect("invariant: writing to a string does not fail");
    text
}

/// The answer to a probe: the failures, if there are any.
fn check(failures: &[String]) -> Response<Full<Bytes>> {
    if failures.is_empty() {
        return response(StatusCode::OK, TEXT, "ok\n");
    }
    let text = format!("{}\n", failures.join("\n"));
    response(StatusCode::SERVICE_UNAVAILABLE, TEXT, text)
}

/// A response with a body of one content type.
pub fn response(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(admin: &Admin, path: &str) -> StatusCode {
        let request = Request::get(path).body(()).unwrap();
        answer(admin, &request).status()
    }

    /// Check T03.
    #[tokio::test(start_paused = true)]
    async fn a_hung_pass_fails_liveness() {
        let mut registry = Registry::default();
        let health = Health::new(&mut registry);
        let limit = Duration::from_mins(1);
        let pass = health.watchdog().begin("nodepool", None, limit);
        let admin = Admin { health, registry };
        tokio::time::advance(limit).await;
        assert_eq!(get(&admin, "/livez"), StatusCode::OK);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(get(&admin, "/livez"), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(get(&admin, "/readyz"), StatusCode::OK);
        drop(pass);
        assert_eq!(get(&admin, "/livez"), StatusCode::OK);
    }

    #[test]
    fn liveness_does_not_depend_on_readiness() {
        let mut registry = Registry::default();
        let health = Health::new(&mut registry);
        let check = health.check("scan", "has not begun");
        let admin = Admin { health, registry };
        assert_eq!(get(&admin, "/livez"), StatusCode::OK);
        assert_eq!(get(&admin, "/readyz"), StatusCode::SERVICE_UNAVAILABLE);
        check.pass();
        assert_eq!(get(&admin, "/readyz"), StatusCode::OK);
        assert_eq!(get(&admin, "/secrets"), StatusCode::NOT_FOUND);
        assert!(admin.metrics().contains("ready{check=\"scan\"} 1"));
    }
}
