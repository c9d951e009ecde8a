//! Asks backends: one HTTP/2 connection to each, opened again when it is gone.
//!
//! A conversion changes nothing in the world, so that a question is simply asked again when its answer is lost.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use super::certificates::Latest;
use super::convert::{Ask, Unanswered};
use super::metrics::Metrics;
use super::route::BackendId;

/// For a connection, with TLS.
const CONNECT: Duration = Duration::from_secs(3);
/// Pauses between tries: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Bytes that a backend may send before we have read them.
const WINDOW: u32 = 4 * 1024 * 1024;
/// How often a silent connection is tried.
const PING: Duration = Duration::from_secs(10);
const PORT: u16 = 443;
const CONVERT: PathAndQuery = PathAndQuery::from_static("/convert");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The backends.
#[derive(Debug)]
pub(super) struct Backends {
    all: Vec<Backend>,
    limits: Limits,
    metrics: Metrics,
}

/// How long a backend may take, and how much it may say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) answer: usize,
}

struct Backend {
    authority: Authority,
    name: ServerName<'static>,
    tls: Latest,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// Whether a connection was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Connected,
    Reconnected,
}

/// Why one try failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("cannot be reached: {0}")]
    Connect(String),
    #[error("broke off: {0}")]
    Broken(String),
    /// Asking again would not help.
    #[error("answers {0}")]
    Status(StatusCode),
    #[error("answers more than {0} bytes")]
    TooLong(usize),
}

// === impl Backends ===

impl Backends {
    /// Backends at these addresses, whose certificates are for `name`, or else for their host.
    pub(super) fn new(
        authorities: &[Authority],
        name: Option<&str>,
        tls: &Latest,
        limits: Limits,
        metrics: Metrics,
    ) -> Result<Self, String> {
        let backends = authorities.iter().map(|authority| {
            let name = name.unwrap_or_else(|| authority.host().trim_matches(['[', ']']));
            Ok(Backend {
                authority: authority.clone(),
                name: ServerName::try_from(name.to_owned())
                    .map_err(|error| format!("{name:?} is no name of a server: {error}"))?,
                tls: tls.clone(),
                connection: Mutex::default(),
            })
        });
        Ok(Self {
            all: backends.collect::<Result<_, String>>()?,
            limits,
            metrics,
        })
    }

    /// Whether there is a connection to a backend.
    pub(super) async fn reach(&self, BackendId(id): BackendId) -> Result<Reached, Unanswered> {
        let backend = &self.all[id];
        match backend.sender().await {
            Ok((_, reached)) => Ok(reached),
            Err(failed) => Err(backend.unanswered(failed.to_string())),
        }
    }

    /// Asks until there is an answer.
    async fn persist(&self, backend: &Backend, question: Bytes) -> Result<Bytes, Failed> {
        let (mut pause, longest) = PAUSE;
        let end = tokio::time::Instant::now() + self.limits.timeout;
        loop {
            let failed = match backend.once(question.clone(), self.limits.answer).await {
                Ok(answer) => return Ok(answer),
                Err(failed @ (Failed::Status(_) | Failed::TooLong(_))) => return Err(failed),
                Err(failed) => failed,
            };
            backend.forget().await;
            if tokio::time::Instant::now() + pause >= end {
                return Err(failed);
            }
            self.metrics.asked_again();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

impl Ask for Backends {
    async fn ask(&self, BackendId(id): BackendId, question: Bytes) -> Result<Bytes, Unanswered> {
        let backend = &self.all[id];
        let asked = tokio::time::timeout(self.limits.timeout, self.persist(backend, question));
        let problem = match asked.await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(failed)) => failed.to_string(),
            Err(_) => {
                // Perhaps it is the connection that is dead.
                backend.forget().await;
                format!("does not answer within {} s", self.limits.timeout.as_secs())
            }
        };
        Err(backend.unanswered(problem))
    }
}

// === impl Backend ===

impl Backend {
    fn unanswered(&self, problem: String) -> Unanswered {
        Unanswered {
            backend: self.authority.to_string(),
            problem,
        }
    }

    async fn once(&self, question: Bytes, most: usize) -> Result<Bytes, Failed> {
        let (mut sender, _) = self.sender().await?;
        let request = self.request(question)?;
        let broken = |error: &dyn std::error::Error| Failed::Broken(support::error::chain(error));
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| broken(&error))?;
        if answer.status() != StatusCode::OK {
            return Err(Failed::Status(answer.status()));
        }
        match Limited::new(answer.into_body(), most).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(Failed::TooLong(most))
            }
            Err(error) => Err(broken(&*error)),
        }
    }

    fn request(&self, question: Bytes) -> Result<Request<Full<Bytes>>, Failed> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTPS);
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(CONVERT);
        let uri = Uri::from_parts(uri).map_err(|error| Failed::Connect(error.to_string()))?;
        let mut request = Request::new(Full::new(question));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        Ok(request)
    }

    /// The connection, opened if there is none.
    async fn sender(&self) -> Result<(SendRequest<Full<Bytes>>, Reached), Failed> {
        let mut connection = self.connection.lock().await;
        if let Some(sender) = connection.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((sender.clone(), Reached::Connected));
        }
        let opened = tokio::time::timeout(CONNECT, self.open()).await;
        let sender = opened.map_err(|_| Failed::Connect("no answer in time".to_owned()))??;
        *connection = Some(sender.clone());
        Ok((sender, Reached::Reconnected))
    }

    async fn forget(&self) {
        *self.connection.lock().await = None;
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, Failed> {
        let failed = |error: &dyn std::error::Error| Failed::Connect(support::error::chain(error));
        let host = self.authority.host().trim_matches(['[', ']']);
        let port = self.authority.port_u16().unwrap_or(PORT);
        let tcp = TcpStream::connect((host, port)).await;
        let tcp = tcp.map_err(|error| failed(&error))?;
        tcp.set_nodelay(true).map_err(|error| failed(&error))?;
        let config = self.tls.borrow().client.clone();
        let tls = TlsConnector::from(config)
            .connect(self.name.clone(), tcp)
            .await
            .map_err(|error| failed(&error))?;
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .keep_alive_interval(PING)
            .handshake(TokioIo::new(tls))
            .await
            .map_err(|error| failed(&error))?;
        tokio::spawn(async move {
            // Its requests hear of an error.
            let _ = connection.await;
        });
        Ok(sender)
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}
