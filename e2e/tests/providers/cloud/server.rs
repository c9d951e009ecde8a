//! A server on loopback that answers with JSON, from an API that holds its state.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// What a cloud knows and does.
pub(crate) trait Api: Send + 'static {
    /// Does what a request asks for. Nothing for a request that is not known.
    fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer>;
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
    pub(crate) header: Option<(&'static str, &'static str)>,
}

/// A server; dropped, it ends.
#[derive(Debug)]
pub(crate) struct Server {
    url: String,
    accepting: JoinHandle<()>,
}

// === impl Answer ===

impl Answer {
    pub(crate) fn ok(body: Value) -> Self {
        Self::new(StatusCode::OK, body)
    }

    pub(crate) fn new(status: StatusCode, body: Value) -> Self {
        Self {
            status,
            body,
            header: None,
        }
    }

    pub(crate) fn not_found() -> Self {
        let error = json!({ "error": { "code": 404, "message": "not found" } });
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// An object that is there or not.
    pub(crate) fn found(object: Option<Value>) -> Self {
        object.map_or_else(Self::not_found, Self::ok)
    }

    pub(crate) fn empty() -> Self {
        Self::new(StatusCode::NO_CONTENT, Value::Null)
    }
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(api: impl Api) -> Result<Self> {
        Self::start_with(|_| api).await
    }

    /// Starts an API that refers to itself by its URL.
    pub(crate) async fn start_with<A: Api>(api: impl FnOnce(&str) -> A) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let url = format!("http://{}", listener.local_addr()?);
        let api = Arc::new(Mutex::new(api(&url)));
        Ok(Self {
            url,
            accepting: tokio::spawn(accept(listener, api)),
        })
    }

    /// Without a slash at its end.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<A: Api>(listener: TcpListener, api: Arc<Mutex<A>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&api)));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers the requests of a connection.
pub(super) async fn serve<A: Api>(stream: impl AsyncRead + AsyncWrite + Unpin, api: Arc<Mutex<A>>) {
    let service = service_fn(|request| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(respond(request, &api).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // A client that disconnects is not an error.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn respond<A: Api>(request: Request<Incoming>, api: &Mutex<A>) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    // Forms are of no interest.
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let answer = ask(api, &parts.method, parts.uri.path(), &body);
    let mut response = Response::new(Full::default());
    *response.status_mut() = answer.status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if let Some((name, value)) = answer.header {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    if !answer.body.is_null() {
        *response.body_mut() = Full::from(answer.body.to_string());
    }
    response
}

fn ask<A: Api>(api: &Mutex<A>, method: &Method, path: &str, body: &Value) -> Answer {
    let segments: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut api = api.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = api.answer(method.as_str(), &segments, body);
    answer.unwrap_or_else(|| {
        eprintln!("the fake cloud does not know {method} {path}");
        Answer::not_found()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Api for Echo {
        fn answer(&mut self, method: &str, path: &[&str], body: &Value) -> Option<Answer> {
            match (method, path) {
                ("POST", ["things", name]) => Some(Answer::ok(json!([name, body["x"]]))),
                _ => None,
            }
        }
    }

    #[test]
    fn paths_are_divided_and_unknown_ones_are_not_found() {
        let api = Mutex::new(Echo);
        let body = json!({ "x": 1 });
        for (method, path, expected) in [
            (Method::POST, "/things/a/", Answer::ok(json!(["a", 1]))),
            (Method::POST, "/things", Answer::not_found()),
            (Method::GET, "/things/a", Answer::not_found()),
        ] {
            assert_eq!(ask(&api, &method, path, &body), expected, "{method} {path}");
        }
    }
}
