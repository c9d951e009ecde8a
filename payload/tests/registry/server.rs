//! A small registry: real HTTP on a real socket, with faults on demand.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::image::{Blob, Image};

/// Who may read.
#[derive(Debug, Clone, Default)]
pub(crate) enum Access {
    #[default]
    Everybody,
    /// `user:password`, at once.
    Basic(&'static str),
    /// `user:password`, for a token.
    Token(&'static str),
    /// A refresh token, for a token.
    Refresh(&'static str),
}

/// How a registry keeps its clients waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It never responds.
    Silent,
    /// It sends one byte at a time of what has this in its path.
    Drip { path: String, every: Duration },
}

/// What it has, and how it behaves.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) access: Access,
    /// By repository and tag or digest.
    manifests: BTreeMap<String, Vec<u8>>,
    blobs: BTreeMap<String, Vec<u8>>,
    /// How many of the next requests get no response but 503.
    pub(crate) busy: usize,
    /// How many of the next blobs are cut off.
    pub(crate) cut: usize,
    /// How it keeps its clients waiting.
    pub(crate) fault: Option<Fault>,
    /// Where blobs are instead.
    pub(crate) elsewhere: Option<SocketAddr>,
    /// The status and challenge of every response.
    pub(crate) challenge: Option<String>,
    /// Where the token is to be had, if not here.
    pub(crate) realm: Option<String>,
    /// The paths of received requests.
    pub(crate) log: Vec<String>,
    /// Paths of requests with credentials.
    pub(crate) authorized: Vec<String>,
}

/// A registry.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    serving: tokio::task::JoinHandle<()>,
}

const TOKEN: &str = "Bearer granted";

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// On another address of this machine: another host.
    pub(crate) async fn start_on(host: &str) -> Self {
        Self::listening(host, None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        Self::listening("127.0.0.1", tls).await
    }

    async fn listening(host: &str, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let serving = tokio::spawn(async move {
            // Connections end with the registry.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (shared.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, shared, address).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, shared, address).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            state,
            serving,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// It is removed, with all its connections.
    pub(crate) async fn stop(&mut self) {
        self.serving.abort();
        let _ = (&mut self.serving).await;
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The reference of a tag in the repository `releases`.
    pub(crate) fn tag(&self, tag: &str) -> String {
        format!("{}/ocp/releases:{tag}", self.address)
    }

    /// The reference by digest.
    pub(crate) fn digest(&self, blob: &Blob) -> String {
        format!("{}/ocp/releases@{}", self.address, blob.digest)
    }

    pub(crate) fn push(&self, tag: &str, image: &Image) {
        self.push_manifest(tag, &image.manifest);
        for blob in &image.blobs {
            let mut state = self.state();
            state.blobs.insert(blob.digest.clone(), blob.bytes.clone());
        }
    }

    pub(crate) fn push_manifest(&self, tag: &str, manifest: &Blob) {
        for name in [tag, &manifest.digest] {
            let mut state = self.state();
            state
                .manifests
                .insert(name.to_owned(), manifest.bytes.clone());
        }
    }

    /// Sends something else than what it should under this digest.
    pub(crate) fn tamper(&self, digest: &str) {
        let mut state = self.state();
        let State {
            blobs, manifests, ..
        } = &mut *state;
        let bytes = blobs.get_mut(digest).or(manifests.get_mut(digest)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
    }

    /// How often something was requested.
    pub(crate) fn requests(&self, what: &str) -> usize {
        let state = self.state();
        state.log.iter().filter(|path| path.contains(what)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve<S>(stream: S, state: Arc<Mutex<State>>, address: SocketAddr)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { response(request, &state, address).await }
    });
    let connection = hyper::server::conn::http1::Builder::new();
    // Whether it was cut off is what the tests are about.
    let _ = connection
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

type TestResponse = Response<http_body_util::combinators::BoxBody<Bytes, std::io::Error>>;

async fn response(
    request: Request<Incoming>,
    state: &Mutex<State>,
    address: SocketAddr,
) -> Result<TestResponse, Infallible> {
    let (parts, body) = request.into_parts();
    let form = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let authorization = parts.headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let fault = state.lock().unwrap().fault.clone();
    if fault == Some(Fault::Silent) {
        state.lock().unwrap().log.push(path);
        return std::future::pending().await;
    }
    let mut state = state.lock().unwrap();
    state.log.push(path.clone());
    if authorization.is_some() {
        state.authorized.push(path.clone());
    }
    if path == "/token" {
        let query = parts.uri.query().unwrap_or_default();
        return Ok(token(
            &state,
            &parts.method,
            query,
            &form,
            authorization.as_deref(),
        ));
    }
    if state.busy > 0 {
        state.busy -= 1;
        return Ok(status(StatusCode::SERVICE_UNAVAILABLE));
    }
    if let Some(challenge) = state
        .challenge
        .clone()
        .or_else(|| challenge(&state, address, authorization.as_deref()))
    {
        let mut response = status(StatusCode::UNAUTHORIZED);
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        return Ok(response);
    }
    Ok(content(&mut state, &path))
}

fn content(state: &mut State, path: &str) -> TestResponse {
    let Some((_, rest)) = path.split_once("/v2/ocp/releases/") else {
        return status(StatusCode::NOT_FOUND);
    };
    let (kind, name) = rest.split_once('/').unwrap();
    let found = match kind {
        "manifests" => state.manifests.get(name).cloned(),
        _ => state.blobs.get(name).cloned(),
    };
    if let Some(elsewhere) = state.elsewhere.filter(|_| kind == "blobs") {
        let mut response = status(StatusCode::TEMPORARY_REDIRECT);
        let location = format!("http://{elsewhere}{path}").parse().unwrap();
        response.headers_mut().insert(header::LOCATION, location);
        return response;
    }
    let Some(bytes) = found else {
        return status(StatusCode::NOT_FOUND);
    };
    if kind == "blobs" && state.cut > 0 {
        state.cut -= 1;
        return cut_off(&bytes);
    }
    if let Some(Fault::Drip { path: of, every }) = &state.fault
        && path.contains(of)
    {
        return drip(bytes, *every);
    }
    let pieces: Vec<_> = bytes.chunks(1 << 14).map(Bytes::copy_from_slice).collect();
    let frames = pieces
        .into_iter()
        .map(|piece| Ok(hyper::body::Frame::data(piece)));
    let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
    Response::new(body.boxed())
}

/// One byte at a time.
fn drip(bytes: Vec<u8>, every: Duration) -> TestResponse {
    let frames = futures::stream::unfold(bytes.into_iter(), move |mut rest| async move {
        let byte = Bytes::copy_from_slice(&[rest.next()?]);
        tokio::time::sleep(every).await;
        Some((Ok(hyper::body::Frame::data(byte)), rest))
    });
    let body = http_body_util::StreamBody::new(frames);
    Response::new(body.boxed())
}

/// Half of it, and an error.
fn cut_off(bytes: &[u8]) -> TestResponse {
    let half = Bytes::copy_from_slice(&bytes[..bytes.len() / 2]);
    let frames = [
        Ok(hyper::body::Frame::data(half)),
        Err(std::io::Error::other("cut off")),
    ];
    let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
    Response::new(body.boxed())
}

fn status(status: StatusCode) -> TestResponse {
    text(status, Bytes::new())
}

fn text(status: StatusCode, text: Bytes) -> TestResponse {
    let body = Full::new(text).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    response
}

/// The challenge for unauthenticated clients.
fn challenge(state: &State, address: SocketAddr, authorization: Option<&str>) -> Option<String> {
    let expected = match state.access {
        Access::Everybody => return None,
        Access::Basic(pair) => basic(pair),
        Access::Token(_) | Access::Refresh(_) => TOKEN.to_owned(),
    };
    if authorization == Some(expected.as_str()) {
        return None;
    }
    if let Access::Basic(_) = state.access {
        return Some("Basic realm=\"registry\"".to_owned());
    }
    let here = format!("http://{address}/token");
    let realm = state.realm.as_ref().unwrap_or(&here);
    Some(format!(
        "Bearer realm=\"{realm}\",service=\"the registry\",scope=\"anything\""
    ))
}

fn basic(pair: &str) -> String {
    format!("Basic {}", STANDARD.encode(pair))
}

fn token(
    state: &State,
    method: &Method,
    query: &str,
    form: &[u8],
    authorization: Option<&str>,
) -> TestResponse {
    let form = String::from_utf8_lossy(form);
    let requested = match method {
        &Method::POST => &*form,
        _ => query,
    };
    let good = match state.access {
        Access::Token(pair) => authorization == Some(basic(pair).as_str()),
        Access::Refresh(token) => {
            let expected = format!("refresh_token={token}");
            form.split('&').any(|part| part == expected)
        }
        Access::Everybody | Access::Basic(_) => false,
    };
    let scope = "service=the+registry&scope=repository%3Aocp%2Freleases%3Apull";
    if !good || !requested.starts_with(scope) {
        return status(StatusCode::UNAUTHORIZED);
    }
    let key = if form.is_empty() {
        "token"
    } else {
        "access_token"
    };
    text(StatusCode::OK, json!({ key: "granted" }).to_string().into())
}
