//! The port for probes and metrics. Nothing in it comes from the cluster.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::listen;

/// How long a request's head may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The text format of `OpenMetrics`.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What probes and metrics are served from.
pub(crate) struct Admin {
    /// Why it is not ready.
    pub(crate) problem: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// All metrics, in the text format of `OpenMetrics`.
    pub(crate) metrics: Box<dyn Fn() -> String + Send + Sync>,
}

// === impl Admin ===

impl Admin {
    /// Serves probes, until dropped.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let admin = Arc::new(self);
        loop {
            let (stream, _) = listen::next(|| listener.accept()).await;
            tokio::spawn(Arc::clone(&admin).serve_connection(TokioIo::new(stream)));
        }
    }

    async fn serve_connection(self: Arc<Self>, io: TokioIo<tokio::net::TcpStream>) {
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

    fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is served\n");
        }
        match request.uri().path() {
            "/healthz" => answer(StatusCode::OK, TEXT, "ok\n"),
            "/readyz" => match (self.problem)() {
                None => answer(StatusCode::OK, TEXT, "ok\n"),
                Some(problem) => answer(
                    StatusCode::SERVICE_UNAVAILABLE,
                    TEXT,
                    format!("{problem}\n"),
                ),
            },
            "/metrics" => answer(StatusCode::OK, OPEN_METRICS, (self.metrics)()),
            _ => answer(
                StatusCode::NOT_FOUND,
                TEXT,
                "there is /healthz, /readyz and /metrics\n",
            ),
        }
    }
}

/// A whole answer of one content type.
pub(crate) fn answer(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
