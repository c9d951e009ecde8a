//! The port for probes and metrics: `/livez`, `/readyz`, `/metrics`.

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

use crate::args::Address;
use crate::health::Health;

/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long to wait when the system has nothing to accept a connection with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The text format of `OpenMetrics`.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Tells how the program does.
#[derive(Debug)]
pub struct Admin {
    /// What makes it unready.
    pub health: Arc<Health>,
    /// What is counted.
    pub registry: Registry,
}

/// Opens the port.
pub async fn listen(address: Address) -> io::Result<TcpListener> {
    match address {
        Address::One(address) => TcpListener::bind(address).await,
        // Where there is no IPv6, this is the address that is left.
        Address::All(port) => {
            match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
                Ok(listener) => Ok(listener),
                Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
            }
        }
    }
}

// === impl Admin ===

impl Admin {
    /// Serves probes, until dropped.
    pub async fn serve(self, listener: TcpListener) {
        let admin = Arc::new(self);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(Arc::clone(&admin).serve_connection(TokioIo::new(stream)));
                }
                Err(error) => {
                    tracing::warn!(%error, "Connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve_connection(self: Arc<Self>, io: TokioIo<TcpStream>) {
        let service = service_fn(|request| {
            let answer = self.answer(&request);
            async { Ok::<_, Infallible>(answer) }
        });
        let serving = Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .serve_connection(io, service);
        // Nothing depends on a probe that goes away.
        let _ = serving.await;
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is served\n");
        }
        match request.uri().path() {
            "/livez" | "/healthz" => answer(StatusCode::OK, TEXT, "ok\n"),
            "/readyz" => self.readiness(),
            "/metrics" => answer(StatusCode::OK, OPEN_METRICS, self.metrics()),
            _ => answer(
                StatusCode::NOT_FOUND,
                TEXT,
                "there is /livez, /readyz and /metrics\n",
            ),
        }
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        let problems = self.health.problems();
        if problems.is_empty() {
            return answer(StatusCode::OK, TEXT, "ok\n");
        }
        let text = format!("{}\n", problems.join("\n"));
        answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, text)
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)
            .expect("invariant: writing to a string does not fail");
        text
    }
}

fn answer(
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
        admin.answer(&request).status()
    }

    #[test]
    fn probes_tell_alive_from_ready() {
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
