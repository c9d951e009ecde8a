//! A relay on loopback before a fake AWS: the calls of a program pass a [`CallGate`] there.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::calls::{Call, CallGate};
use crate::raw::RawClient;

/// The beginnings of actions that change nothing.
const READS: [&str; 4] = ["Describe", "Get", "Head", "List"];

/// The relay. Dropped, it ends, and with it all its connections.
#[derive(Debug)]
pub struct CloudRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What connections share.
#[derive(Debug)]
struct Shared {
    cloud: RawClient,
    calls: CallGate,
}

// === impl CloudRelay ===

impl CloudRelay {
    /// Starts it before the API at a URL.
    pub async fn start(url: &str) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            cloud: RawClient::new(url, None)?,
            calls: CallGate::new(),
        });
        Ok(Self {
            address,
            accepting: tokio::spawn(accept(listener, Arc::clone(&shared))),
            shared,
        })
    }

    /// Its URL, for programs.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls of programs.
    pub fn calls(&self) -> &CallGate {
        &self.shared.calls
    }
}

impl Drop for CloudRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.respond(request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // A client that disconnects is not an error.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

// === impl Shared ===

impl Shared {
    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return plain(StatusCode::BAD_REQUEST, "the request is incomplete");
        };
        let body = body.to_bytes();
        let Some(number) = self.calls.arrives(call(&parts, &body)) else {
            return std::future::pending().await;
        };
        let response = match self.forward(parts, body).await {
            Ok(response) => response,
            Err(error) => plain(StatusCode::BAD_GATEWAY, &format!("{error:#}")),
        };
        if !self.calls.responds(number) {
            return std::future::pending().await;
        }
        response
    }

    async fn forward(&self, parts: request::Parts, body: Bytes) -> Result<Response<Full<Bytes>>> {
        let mut request = Request::new(body.to_vec());
        *request.method_mut() = parts.method;
        *request.uri_mut() = parts.uri;
        *request.headers_mut() = end_to_end(parts.headers);
        let response = self.cloud.send(request).await?;
        let (status, headers) = (response.status, response.headers.clone());
        let mut answer = Response::new(Full::new(Bytes::from(response.bytes().await?)));
        *answer.status_mut() = status;
        *answer.headers_mut() = end_to_end(headers);
        Ok(answer)
    }
}

/// Which call a request is: the action of its form, or its method and path.
fn call(parts: &request::Parts, body: &[u8]) -> Call {
    let text = String::from_utf8_lossy(body);
    let action = text
        .split('&')
        .find_map(|pair| pair.strip_prefix("Action="));
    match action {
        Some(action) => Call {
            name: action.to_owned(),
            writes: !READS.iter().any(|verb| action.starts_with(verb)),
        },
        None => Call {
            name: format!("{} {}", parts.method, parts.uri.path()),
            writes: ![Method::GET, Method::HEAD].contains(&parts.method),
        },
    }
}

/// The headers that are not about one connection or the form of a body.
fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_names_of_actions_or_paths() {
        for (method, path, body, name, writes) in [
            (
                Method::POST,
                "/",
                "Action=DescribeVpcs&Version=1",
                "DescribeVpcs",
                false,
            ),
            (
                Method::POST,
                "/",
                "Action=CreateVpc&Version=1",
                "CreateVpc",
                true,
            ),
            (
                Method::POST,
                "/",
                "Version=1&Action=TerminateInstances",
                "TerminateInstances",
                true,
            ),
            (
                Method::GET,
                "/2013-04-01/hostedzone?marker=a",
                "",
                "GET /2013-04-01/hostedzone",
                false,
            ),
            (Method::HEAD, "/bucket", "", "HEAD /bucket", false),
            (Method::PUT, "/bucket", "", "PUT /bucket", true),
            (
                Method::POST,
                "/2013-04-01/hostedzone",
                "<Action>DELETE</Action>",
                "POST /2013-04-01/hostedzone",
                true,
            ),
        ] {
            let request = Request::builder().method(method).uri(path).body(());
            let (parts, ()) = request.unwrap().into_parts();
            let expected = Call {
                name: name.to_owned(),
                writes,
            };
            assert_eq!(call(&parts, body.as_bytes()), expected, "{path} {body}");
        }
    }
}
