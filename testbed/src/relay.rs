//! An HTTP relay before an API server that responds to, holds or forwards requests, as a test decides.
//!
//! Clients connect with plain HTTP on loopback. Their credentials are passed on, or the relay has its own.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::control_plane::Endpoint;
use crate::raw::certificate;

/// When a request is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It has arrived, and the API server knows nothing of it.
    Arrived,
    /// The API server has responded, and the client knows nothing of it.
    Responded(StatusCode),
}

/// What the relay does with it.
#[derive(Debug, Clone, PartialEq)]
pub enum Disposition {
    /// It is forwarded.
    Pass,
    /// It is not forwarded, and its client waits.
    Hold,
    /// The relay responds with this, and success.
    Respond(Value),
    /// It fails, as if the API server had rejected it.
    Fail(StatusCode),
}

/// Decides about each request, twice: on arrival and after the response.
pub trait Intercept: Fn(&Parts, Moment) -> Disposition + Send + Sync + 'static {}

impl<F: Fn(&Parts, Moment) -> Disposition + Send + Sync + 'static> Intercept for F {}

/// A relay on a port of its own.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    accepting: JoinHandle<()>,
}

struct Line<J> {
    upstream: kube::Client,
    intercept: J,
}

// === impl Relay ===

impl Relay {
    /// Before an API server; clients bring their tokens.
    pub async fn before(endpoint: &Endpoint, intercept: impl Intercept) -> Result<Self> {
        let server = &endpoint.server;
        let url = server
            .parse()
            .with_context(|| format!("{server:?} is not a URL"))?;
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![certificate(&endpoint.authority)?]);
        Self::start(config, intercept).await
    }

    /// Before the API server of a kubeconfig, as its user.
    pub async fn as_user_of(kubeconfig: &Path, intercept: impl Intercept) -> Result<Self> {
        let read = Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options)
            .await
            .with_context(|| format!("cannot use {}", kubeconfig.display()))?;
        Self::start(config, intercept).await
    }

    async fn start(mut config: kube::Config, intercept: impl Intercept) -> Result<Self> {
        // Clients of the relay have to see every response unchanged.
        config.default_retry = false;
        config.read_timeout = None;
        let upstream = kube::Client::try_from(config).context("cannot make the relay's client")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let port = listener.local_addr()?.port();
        let line = Arc::new(Line {
            upstream,
            intercept,
        });
        Ok(Self {
            port,
            accepting: tokio::spawn(accept(listener, line)),
        })
    }

    /// Where it listens.
    pub fn server(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port of it.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<J: Intercept>(listener: TcpListener, line: Arc<Line<J>>) {
    // Connections end with the relay.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&line)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve<J: Intercept>(stream: TcpStream, line: Arc<Line<J>>) {
    let service = service_fn(|request| {
        let line = Arc::clone(&line);
        async move { Ok::<_, Infallible>(line.response(request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // A client that disconnects is not an error.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

// === impl Line ===

impl<J: Intercept> Line<J> {
    async fn response(&self, request: Request<Incoming>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        parts.headers.remove(header::HOST);
        if let Some(said) = self.ask(&parts, Moment::Arrived).await {
            return said;
        }
        let Ok(body) = body.collect().await else {
            return plain(StatusCode::BAD_REQUEST, "the request was not whole");
        };
        let onward = Request::from_parts(parts.clone(), Body::from(body.to_bytes().to_vec()));
        let response = match self.upstream.send(onward).await {
            Ok(response) => response,
            Err(error) => return plain(StatusCode::BAD_GATEWAY, &error.to_string()),
        };
        let moment = Moment::Responded(response.status());
        self.ask(&parts, moment).await.unwrap_or(response)
    }

    /// What is said in place of continuing, if anything ever is.
    async fn ask(&self, parts: &Parts, moment: Moment) -> Option<Response<Body>> {
        match (self.intercept)(parts, moment) {
            Disposition::Pass => None,
            Disposition::Hold => std::future::pending().await,
            Disposition::Respond(value) => {
                let mut response = plain(StatusCode::OK, &value.to_string());
                let kind = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                Some(response)
            }
            Disposition::Fail(status) => Some(failure(status)),
        }
    }
}

/// A failure as an API server reports it.
fn failure(status: StatusCode) -> Response<Body> {
    let body = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "message": "the relay says so",
        "code": status.as_u16(),
    });
    let mut response = plain(status, &body.to_string());
    let kind = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.as_bytes().to_vec()));
    *response.status_mut() = status;
    response
}
