//! Calls backends, over one HTTP/2 connection each, which is reopened when it is lost.
//!
//! A conversion has no side effects, so a request with a lost response is retried.

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
use super::convert::{Ask, BackendError};
use super::metrics::Metrics;
use super::route::BackendId;

/// Timeout for a connection, including TLS.
const CONNECT: Duration = Duration::from_secs(3);
/// Backoff between attempts: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Flow control window of a backend.
const WINDOW: u32 = 4 * 1024 * 1024;
/// Interval of keepalive pings.
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

/// Limits for the response of a backend.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) response: usize,
}

struct Backend {
    authority: Authority,
    name: ServerName<'static>,
    tls: Latest,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// Whether a connection was open already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Connected,
    Reconnected,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error("cannot be reached: {0}")]
    Connect(String),
    #[error("interrupted: {0}")]
    Broken(String),
    /// A retry would not help.
    #[error("responds with {0}")]
    Status(StatusCode),
    #[error("responds with more than {0} bytes")]
    TooLong(usize),
}

// === impl Backends ===

impl Backends {
    /// Backends at these addresses, with certificates for `name`, or else for their host.
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
                    .map_err(|error| format!("{name:?} is not a valid server name: {error}"))?,
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

    /// Connects to a backend if there is no connection.
    pub(super) async fn reach(&self, BackendId(id): BackendId) -> Result<Reached, BackendError> {
        let backend = &self.all[id];
        match backend.sender().await {
            Ok((_, reached)) => Ok(reached),
            Err(failed) => Err(backend.error(failed.to_string())),
        }
    }

    /// Calls the backend until it responds.
    async fn ask_with_retries(
        &self,
        backend: &Backend,
        question: Bytes,
    ) -> Result<Bytes, AttemptError> {
        let (mut pause, longest) = PAUSE;
        let end = tokio::time::Instant::now() + self.limits.timeout;
        loop {
            let failed = match backend
                .ask_once(question.clone(), self.limits.response)
                .await
            {
                Ok(response) => return Ok(response),
                Err(failed @ (AttemptError::Status(_) | AttemptError::TooLong(_))) => {
                    return Err(failed);
                }
                Err(failed) => failed,
            };
            backend.disconnect().await;
            if tokio::time::Instant::now() + pause >= end {
                return Err(failed);
            }
            self.metrics.retried();
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
}

impl Ask for Backends {
    async fn ask(&self, BackendId(id): BackendId, question: Bytes) -> Result<Bytes, BackendError> {
        let backend = &self.all[id];
        let attempts = tokio::time::timeout(
            self.limits.timeout,
            self.ask_with_retries(backend, question),
        );
        let problem = match attempts.await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(failed)) => failed.to_string(),
            Err(_) => {
                // The connection may be broken.
                backend.disconnect().await;
                format!(
                    "does not respond within {} s",
                    self.limits.timeout.as_secs()
                )
            }
        };
        Err(backend.error(problem))
    }
}

// === impl Backend ===

impl Backend {
    fn error(&self, problem: String) -> BackendError {
        BackendError {
            backend: self.authority.to_string(),
            problem,
        }
    }

    async fn ask_once(&self, question: Bytes, most: usize) -> Result<Bytes, AttemptError> {
        let (mut sender, _) = self.sender().await?;
        let request = self.request(question)?;
        let broken =
            |error: &dyn std::error::Error| AttemptError::Broken(support::error::chain(error));
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| broken(&error))?;
        if response.status() != StatusCode::OK {
            return Err(AttemptError::Status(response.status()));
        }
        match Limited::new(response.into_body(), most).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(AttemptError::TooLong(most))
            }
            Err(error) => Err(broken(&*error)),
        }
    }

    fn request(&self, question: Bytes) -> Result<Request<Full<Bytes>>, AttemptError> {
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(Scheme::HTTPS);
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(CONVERT);
        let uri = Uri::from_parts(uri).map_err(|error| AttemptError::Connect(error.to_string()))?;
        let mut request = Request::new(Full::new(question));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        Ok(request)
    }

    /// The connection, opened if necessary.
    async fn sender(&self) -> Result<(SendRequest<Full<Bytes>>, Reached), AttemptError> {
        let mut connection = self.connection.lock().await;
        if let Some(sender) = connection.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((sender.clone(), Reached::Connected));
        }
        let opened = tokio::time::timeout(CONNECT, self.open()).await;
        let sender = opened.map_err(|_| AttemptError::Connect("timed out".to_owned()))??;
        *connection = Some(sender.clone());
        Ok((sender, Reached::Reconnected))
    }

    async fn disconnect(&self) {
        *self.connection.lock().await = None;
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, AttemptError> {
        let failed =
            |error: &dyn std::error::Error| AttemptError::Connect(support::error::chain(error));
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
            // Its requests return the error.
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
