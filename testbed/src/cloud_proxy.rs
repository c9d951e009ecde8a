//! A [proxy](TlsProxy) with a [fake of a cloud](fake_clouds) behind it. Programs run unchanged, with the URLs that they have for
//! the real cloud.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use bytes::Bytes;
use fake_clouds::{Answer, Cloud};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use support::rest;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_rustls::server::TlsStream;

use crate::calls::{Call, CallGate};
use crate::certs::Authority;
use crate::tls_proxy::TlsProxy;

/// The token that clients get for their credentials.
const TOKEN: &str = "Bearer token-of-the-fake";
/// How many steps of the cloud pass before each call, so that nothing has to be waited for.
const STEPS: u32 = 3;
/// Headers of calls that fakes read.
const HEADERS: [&str; 3] = ["crn", "iam-apikey", "ibm-service-instance-id"];
/// Variables that would send programs past this proxy, or have them trust others.
const OTHER_VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_DIR",
];

/// The fake and its proxy. Dropped, both end.
#[derive(Debug)]
pub struct CloudProxy {
    proxy: TlsProxy,
    authority: PathBuf,
    shared: Arc<Shared>,
}

/// What connections share.
struct Shared {
    cloud: Mutex<Box<dyn Cloud>>,
    calls: CallGate,
}

// === impl CloudProxy ===

impl CloudProxy {
    /// Starts it for these hosts of a cloud. `directory` is for its certificates.
    pub async fn start(
        directory: &Path,
        hosts: &[&str],
        cloud: impl Cloud + 'static,
    ) -> Result<Self> {
        let authority = Authority::create(directory)?;
        let shared = Arc::new(Shared {
            cloud: Mutex::new(Box::new(cloud)),
            calls: CallGate::new(),
        });
        let cloud = Arc::clone(&shared);
        let serve = move |host, stream| serve(Arc::clone(&cloud), host, stream);
        Ok(Self {
            proxy: TlsProxy::start(&authority, "cloud", hosts, serve).await?,
            authority: authority.certificate(),
            shared,
        })
    }

    /// Has a program use the proxy, and trust its authority. By `ALL_PROXY`: clients of the API server read `HTTPS_PROXY`.
    pub fn configure(&self, command: &mut Command) {
        for name in OTHER_VARIABLES {
            command.env_remove(name);
        }
        command
            .env("ALL_PROXY", self.proxy.url())
            .env("SSL_CERT_FILE", &self.authority);
    }

    /// What there is in the cloud.
    pub fn snapshot(&self) -> Vec<String> {
        self.shared.cloud().snapshot()
    }

    /// Continues with another cloud in place of this one.
    pub fn replace(&self, cloud: impl Cloud + 'static) {
        *self.shared.cloud() = Box::new(cloud);
    }

    /// The calls of programs, without those for tokens.
    pub fn calls(&self) -> &CallGate {
        &self.shared.calls
    }
}

/// Answers the calls of a connection to a host.
async fn serve(shared: Arc<Shared>, host: String, stream: TlsStream<TcpStream>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        let host = host.clone();
        async move { Ok::<_, Infallible>(shared.respond(&host, request).await) }
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn cloud(&self) -> MutexGuard<'_, Box<dyn Cloud>> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn respond(&self, host: &str, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return response(Answer::empty(400));
        };
        match self.answer(host, &parts, &body.to_bytes()) {
            Some(answer) => response(answer),
            None => std::future::pending().await,
        }
    }

    /// `None` for a call that is held.
    fn answer(&self, host: &str, parts: &request::Parts, body: &[u8]) -> Option<Answer> {
        let header = |name: &str| parts.headers.get(name)?.to_str().ok().map(str::to_owned);
        let kind = header(CONTENT_TYPE.as_str()).unwrap_or_default();
        if kind.starts_with("application/x-www-form-urlencoded") {
            let token = TOKEN.trim_start_matches("Bearer ");
            return Some(Answer::ok(
                json!({ "access_token": token, "expires_in": 3600 }),
            ));
        }
        if header(AUTHORIZATION.as_str()).as_deref() != Some(TOKEN) {
            return Some(Answer::refused(401, "Unauthorized", "there is no token"));
        }
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
        let url = format!("https://{host}{path}");
        let mut call = rest::Request::new(parts.method.clone(), url).with_body(document(body));
        let headers = HEADERS
            .iter()
            .filter_map(|name| Some((*name, header(name)?)));
        call.headers = headers.collect::<BTreeMap<_, _>>();
        self.call(&call)
    }

    fn call(&self, call: &rest::Request) -> Option<Answer> {
        let mut cloud = self.cloud();
        let number = self.calls.arrives(Call {
            name: call.what(),
            writes: call.method != Method::GET,
        })?;
        for _ in 0..STEPS {
            cloud.pass_time();
        }
        let answer = cloud.answer(call);
        self.calls.responds(number).then_some(answer)
    }
}

/// A body as fakes take it: the document, or its text.
fn document(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let text = || Value::String(String::from_utf8_lossy(body).into_owned());
    serde_json::from_slice(body).unwrap_or_else(|_| text())
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let (kind, body) = match &answer.body {
        Value::Null => (None, String::new()),
        // Documents of object storage.
        Value::String(text) => (Some("application/xml"), text.clone()),
        document => (Some("application/json"), document.to_string()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or_default();
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    if !answer.headers.is_empty() {
        // The operation that a header names is done when it is asked for.
        headers.insert("retry-after", HeaderValue::from_static("1"));
    }
    for (name, value) in answer.headers {
        let name = name.parse::<HeaderName>();
        if let (Ok(name), Ok(value)) = (name, value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    response
}
