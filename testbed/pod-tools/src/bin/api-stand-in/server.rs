//! The server: authenticates a request, finds out what it is about, and answers it from the store.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::failure::Failure;
use crate::groups::{Kind, Program};
use crate::identity::{Authenticator, User};
use crate::request::{Query, Target, wants_metadata};
use crate::store::{Place, Preconditions, Stamp, Store};
use crate::tokens;
use crate::view::View;
use crate::watch::Watch;

/// As large as the API server lets a request be.
const MAX_BODY: usize = 3 * 1024 * 1024;
const HANDSHAKE: Duration = Duration::from_secs(10);
const READ_HEAD: Duration = Duration::from_secs(30);
const MERGE_PATCH: &str = "application/merge-patch+json";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    program: Program,
    authenticator: Authenticator,
    shared: Arc<Shared>,
}

/// The store, and its version for those who wait for changes.
#[derive(Debug)]
pub(crate) struct Shared {
    store: Mutex<Store>,
    version: watch::Sender<u64>,
}

/// A request without its body.
struct Head {
    method: Method,
    target: Target,
    query: Query,
    view: View,
    content_type: String,
}

// === impl Shared ===

impl Shared {
    pub(crate) fn new(version: u64) -> Self {
        Self {
            store: Mutex::new(Store::new(version)),
            version: watch::Sender::new(version),
        }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Writes, and wakes the watches.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store();
        let written = write(&mut store);
        self.version.send_replace(store.version());
        written
    }
}

// === impl Server ===

impl Server {
    pub(crate) fn new(program: Program, authenticator: Authenticator) -> Self {
        // Greater than any version of a process that ran before.
        let version = Timestamp::now().as_millisecond();
        Self {
            program,
            authenticator,
            shared: Arc::new(Shared::new(version.unsigned_abs())),
        }
    }

    /// Serves until the process ends.
    pub(crate) async fn serve(self: &Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        let acceptor = TlsAcceptor::from(self.authenticator.tls());
        loop {
            let (stream, _) = listener.accept().await?;
            let (server, acceptor) = (Arc::clone(self), acceptor.clone());
            tokio::spawn(async move { server.connection(stream, acceptor).await });
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, acceptor: TlsAcceptor) {
        let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await else {
            // The client has another certificate, or has disconnected.
            return;
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificates: Arc<[CertificateDer<'static>]> = certificates
            .iter()
            .map(|it| it.clone().into_owned())
            .collect();
        let service = service_fn(|request| {
            let (server, certificates) = (Arc::clone(&self), Arc::clone(&certificates));
            async move { Ok::<_, Infallible>(server.respond(request, &certificates).await) }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(READ_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        // The client has disconnected: no other one is affected.
        drop(serving.await);
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        certificates: &[CertificateDer<'_>],
    ) -> Response<Body> {
        let user = self.authenticator.user(certificates, request.headers());
        let line = format!("{} {}", request.method(), request.uri().path());
        let response = match self.answer(request, user.as_ref()).await {
            Ok(response) => response,
            Err(failure) => json_response(failure.code, &failure.status()),
        };
        if !line.ends_with('z') {
            let name = user.map_or_else(|| "-".to_owned(), |user| user.name);
            println!("{line} {} {name}", response.status().as_u16());
        }
        response
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        user: Option<&User>,
    ) -> Result<Response<Body>, Failure> {
        let (parts, body) = request.into_parts();
        let target = Target::parse(self.program, parts.uri.path());
        if target == Ok(Target::Health) {
            return Ok(text_response("ok"));
        }
        let user = user.ok_or_else(|| Failure::new(401, "Unauthorized", "Unauthorized"))?;
        let target = target?;
        let is_allowed = match target {
            Target::TokenReviews => user.may_review_tokens(),
            _ => user.is_allowed(),
        };
        if !is_allowed {
            let problem = format!("User {:?} cannot {} this path", user.name, parts.method);
            return Err(Failure::new(403, "Forbidden", problem));
        }
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type
            .and_then(|it| it.to_str().ok())
            .unwrap_or_default();
        let head = Head {
            target,
            query: Query::parse(parts.uri.query().unwrap_or_default())?,
            view: if wants_metadata(&parts.headers) {
                View::Metadata
            } else {
                View::Whole
            },
            content_type: content_type
                .split(';')
                .next()
                .unwrap_or_default()
                .to_owned(),
            method: parts.method,
        };
        let body = read(body).await?;
        self.handle(head, &body)
    }

    fn handle(&self, head: Head, body: &Value) -> Result<Response<Body>, Failure> {
        match (&head.method, &head.target) {
            (&Method::GET, Target::Version) => Ok(json_response(
                200,
                &json!({ "gitVersion": "v0.0.0-stand-in" }),
            )),
            (&Method::GET, Target::Groups) => Ok(json_response(200, &self.program.group_list())),
            (&Method::GET, Target::Group(group)) => Ok(json_response(200, &group.document())),
            (&Method::GET, Target::Resources(group)) => {
                Ok(json_response(200, &group.resource_list()))
            }
            (&Method::POST, Target::TokenReviews) => {
                let review = tokens::review(&self.shared.store(), body, Timestamp::now());
                Ok(json_response(201, &review))
            }
            (_, Target::Collection { kind, namespace }) => {
                let (kind, namespace) = (*kind, namespace.clone());
                self.collection(kind, &namespace, head, body)
            }
            (
                _,
                Target::Object {
                    kind,
                    namespace,
                    name,
                    is_status,
                },
            ) => {
                let place = Place::new(kind, namespace, name);
                self.object(&place, *is_status, &head, body)
            }
            _ => Err(not_allowed()),
        }
    }

    fn collection(
        &self,
        kind: &'static Kind,
        namespace: &str,
        head: Head,
        body: &Value,
    ) -> Result<Response<Body>, Failure> {
        let shared = &self.shared;
        match head.method {
            Method::GET if head.query.is_watch => {
                let watch = Watch::new(shared, kind, namespace, head.query, head.view)?;
                let body = BodyExt::boxed_unsync(StreamBody::new(watch.lines()));
                Ok(response(200, "application/json", body))
            }
            Method::GET => {
                let store = shared.store();
                let objects = store.list(kind, namespace, &head.query.selector);
                let list = head.view.list(kind, &objects, store.version());
                Ok(json_response(200, &list))
            }
            Method::POST => {
                if kind.scope == crate::groups::Scope::Namespaced && namespace.is_empty() {
                    return Err(not_allowed());
                }
                let created =
                    shared.write(|store| store.create(kind, namespace, body.clone(), &stamp()))?;
                Ok(json_response(201, &head.view.object(&created)))
            }
            Method::DELETE => {
                let deleted = shared.write(|store| {
                    let objects = store.list(kind, namespace, &head.query.selector);
                    let deleted = objects.iter().map(|object| {
                        let place = Place::of(kind, object);
                        store.delete(&place, &Preconditions::default(), &stamp())
                    });
                    deleted.collect::<Result<Vec<_>, _>>()
                })?;
                let version = shared.store().version();
                Ok(json_response(200, &head.view.list(kind, &deleted, version)))
            }
            _ => Err(not_allowed()),
        }
    }

    fn object(
        &self,
        place: &Place,
        is_status: bool,
        head: &Head,
        body: &Value,
    ) -> Result<Response<Body>, Failure> {
        let shared = &self.shared;
        let object = match head.method {
            Method::GET => shared.store().get(place)?,
            Method::PUT if is_status => {
                let patch = json!({ "metadata": body["metadata"], "status": body["status"] });
                shared.write(|store| store.patch(place, &patch))?
            }
            Method::PUT => shared.write(|store| store.update(place, body.clone()))?,
            Method::PATCH if head.content_type == MERGE_PATCH => {
                shared.write(|store| store.patch(place, body))?
            }
            Method::PATCH => {
                let problem = format!("the stand-in only supports {MERGE_PATCH}");
                return Err(Failure::new(415, "UnsupportedMediaType", problem));
            }
            Method::DELETE => {
                let preconditions = Preconditions::of(&body["preconditions"]);
                shared.write(|store| store.delete(place, &preconditions, &stamp()))?
            }
            _ => return Err(not_allowed()),
        };
        Ok(json_response(200, &head.view.object(&object)))
    }
}

fn stamp() -> Stamp {
    Stamp {
        time: Timestamp::now()
            .round(jiff::Unit::Second)
            .unwrap_or_default()
            .to_string(),
        uid: uuid::Uuid::new_v4().to_string(),
    }
}

fn not_allowed() -> Failure {
    let problem = "the server does not allow this method on the requested resource";
    Failure::new(405, "MethodNotAllowed", problem)
}

/// Reads a body, JSON or nothing.
async fn read(body: Incoming) -> Result<Value, Failure> {
    let read = Limited::new(body, MAX_BODY).collect().await;
    let bytes = read.map_err(|error| {
        let problem = format!("failed to read the request body: {error}");
        Failure::new(413, "RequestEntityTooLarge", problem)
    })?;
    let bytes = bytes.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Failure::bad_request(format!("the body is not JSON: {error}")))
}

fn json_response(code: u16, value: &Value) -> Response<Body> {
    response(code, "application/json", full(value.to_string()))
}

fn text_response(text: &str) -> Response<Body> {
    response(200, "text/plain", full(text.to_owned()))
}

fn full(text: String) -> Body {
    BodyExt::boxed_unsync(Full::new(Bytes::from(text)))
}

fn response(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    let value = http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}
