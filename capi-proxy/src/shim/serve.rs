//! Serves the API server: HTTPS, `POST /convert`, graceful shutdown on SIGTERM.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use support::accept::{self, Accept};
use support::admin::{self, Endpoints};
use support::shutdown::{self, Drain, Signals};
use support::telemetry;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::{Notify, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::args::ConversionArgs;
use super::body::{self, ReadError};
use super::certificates::{self, Files, Latest};
use super::connections::{self, Connections, Slot};
use super::convert::{Converted, Converter, Failure};
use super::delegate::{Backends, Limits};
use super::memory::{Memory, Reservation};
use super::metrics::{self, Metrics};
use super::probe::Readiness;
use super::review::InvalidReview;
use super::route::Routes;
use super::source::Source;
use crate::config;
use crate::error::Error;
use crate::listen;
use capi_translate::Rules;

/// Worker threads. Parsing a long list takes time for which other reviews should not wait.
const THREADS: usize = 2;
/// Timeout for the TLS handshake, and for the head of a request after it.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Interval of keepalive pings.
const PING: Duration = Duration::from_secs(30);
/// Flow control window of a client. Together with the number of connections, this limits memory.
const WINDOW: u32 = 128 * 1024;
/// Buffer of an HTTP/1.1 connection.
const BUFFER: usize = 32 * 1024;
/// Concurrent requests on one connection.
const MAX_STREAMS: u32 = 100;
/// Timeout for the client to read a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Memory for the conversion of a review, in multiples of its size: the request to the backend, its response, the
/// response to the client, and lists of objects.
const CONVERSION_FACTOR: u64 = 5;
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The webhook.
#[derive(Debug)]
struct Shim {
    converter: Arc<Converter<Backends>>,
    metrics: Metrics,
    limits: body::Limits,
    memory: Memory,
    /// Begins with the shutdown delay.
    stopping: Drain,
}

/// A listener with connections that have the address of their client.
struct Listener(TcpListener);

/// Responses to probes and scrapes.
struct Probes {
    readiness: Arc<Readiness>,
    metrics: Metrics,
}

/// A client connection.
#[derive(Debug)]
struct Client {
    source: Source,
    slot: Slot,
}

/// A response body with memory that is reserved until it is sent.
struct ReservedBody {
    body: Vec<u8>,
    _reservation: Reservation,
    /// Dropped with the response.
    _sent: oneshot::Sender<()>,
}

/// Serves until a signal arrives.
pub(crate) fn run(args: &ConversionArgs) -> Result<(), Error> {
    let rules = config::rules(&args.groups)?;
    check(args, &rules)?;
    telemetry::init(&args.logging.shared(), &[]);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .map_err(Error::system("start a runtime"))?;
    runtime.block_on(serve(args, rules))
}

/// Rejects routes for groups without a standard name, which no backend knows.
fn check(args: &ConversionArgs, rules: &Rules) -> Result<(), Error> {
    use api::group::CapiTypes;
    let is_private = |group: &str| {
        let found = rules.table().find(group.as_bytes());
        found.is_some_and(|(_, types)| types == CapiTypes::Private)
    };
    match args
        .backends
        .iter()
        .find(|route| !is_private(route.group()))
    {
        None => Ok(()),
        Some(route) => Err(Error::Usage(format!(
            "--backend {}=...: not a known private group: use the private name, or add the pair with --group",
            route.group()
        ))),
    }
}

async fn serve(args: &ConversionArgs, rules: Rules) -> Result<(), Error> {
    let mut signals = Signals::new().map_err(Error::system("handle signals"))?;
    let metrics = Metrics::new();
    let readiness = Arc::new(Readiness::new(metrics.clone()));
    let (stop, stopping) = shutdown::channel();
    let (latest, shim) = prepare(args, rules, &metrics, stopping)?;
    let listener = listen::tcp(args.listen).await?;
    let admin = listen::tcp(args.admin_listen).await?;
    write_address_file(args, &listener, &admin)?;

    let (signal, drain) = shutdown::channel();
    let converter = Arc::clone(&shim.converter);
    let (checked, interval) = (Arc::clone(&readiness), args.probe_interval.0);
    let probe_task = tokio::spawn(async move { checked.run_probes(converter, interval).await });
    let probes = Probes {
        readiness: Arc::clone(&readiness),
        metrics: metrics.clone(),
    };
    tokio::spawn(admin::serve(probes, admin));
    let connections = Connections::new(
        connections::Limits {
            total: args.max_connections,
            per_source: args.max_connections_per_client,
        },
        metrics.clone(),
    );
    let listener = Listener(listener);
    tokio::spawn(accept(listener, latest, Arc::new(shim), connections, drain));

    signals.any().await;
    probe_task.abort();
    readiness.shutting_down();
    stop.begin();
    wait_for_clients(args, &mut signals).await;
    signal.begin();
    if tokio::time::timeout(args.drain_timeout.0, signal.all_ended())
        .await
        .is_err()
    {
        tracing::warn!("Aborting reviews that exceed the drain timeout");
    }
    tracing::info!("Stopped");
    Ok(())
}

/// Keeps serving until API servers no longer use this replica, or a second signal arrives.
///
/// An API server does not repeat a review whose connection was closed, even if the connection was idle when the review
/// was sent. So connections are closed after a response only, and those that are left have been idle for the whole time.
async fn wait_for_clients(args: &ConversionArgs, signals: &mut Signals) {
    let delay = args.shutdown_delay.map_or(Duration::ZERO, |delay| delay.0);
    tracing::info!(?delay, "Waiting for API servers to use other replicas");
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = signals.any() => tracing::info!("Ending the shutdown delay"),
    }
}

fn prepare(
    args: &ConversionArgs,
    rules: Rules,
    metrics: &Metrics,
    stopping: Drain,
) -> Result<(Latest, Shim), Error> {
    let files = Files {
        certificate: args.tls_cert_file.clone(),
        key: args.tls_key_file.clone(),
        authority: args.backend_ca.clone(),
        clients: args.client_ca_file.clone(),
    };
    let latest = certificates::load(files, metrics.clone())
        .map_err(|error| Error::Usage(error.to_string()))?;
    let routes = Routes::new(args.backends.iter().cloned());
    let limits = Limits {
        timeout: args.backend_timeout.0,
        response: args.max_review,
    };
    let name = args.backend_server_name.as_deref();
    let backends = Backends::new(routes.backends(), name, &latest, limits, metrics.clone())
        .map_err(Error::Usage)?;
    let shim = Shim {
        converter: Arc::new(Converter {
            rules,
            routes,
            ask: backends,
        }),
        metrics: metrics.clone(),
        limits: body::Limits {
            bytes: args.max_review,
            time: args.read_timeout.0,
        },
        memory: Memory::new(args.max_memory),
        stopping,
    };
    Ok((latest, shim))
}

fn write_address_file(
    args: &ConversionArgs,
    listener: &TcpListener,
    admin: &TcpListener,
) -> Result<(), Error> {
    let address = listener.local_addr().unwrap_or(args.listen);
    let admin = admin.local_addr().unwrap_or(args.admin_listen);
    tracing::info!(%address, "Serving the API server");
    tracing::info!(address = %admin, "Serving probes and metrics");
    match &args.address_file {
        Some(path) => listen::write_addresses(path, vec![address.to_string()], admin),
        None => Ok(()),
    }
}

/// Accepts connections until the drain begins.
async fn accept(
    listener: Listener,
    latest: Latest,
    shim: Arc<Shim>,
    connections: Connections,
    mut drain: Drain,
) {
    let draining = drain.clone();
    let serve = |(stream, peer): (TcpStream, SocketAddr), _| {
        let acceptor = TlsAcceptor::from(latest.borrow().server.clone());
        let source = Source::from(peer.ip());
        let slot = connections.accept(source);
        let client = Arc::new(Client { source, slot });
        let shim = Arc::clone(&shim);
        tokio::spawn(shim.connection(stream, client, acceptor, draining.clone()));
    };
    accept::run(listener, None, drain.begun(), serve).await;
}

// === impl Listener ===

impl Accept for Listener {
    type Connection = (TcpStream, SocketAddr);

    async fn accept(&self) -> io::Result<Self::Connection> {
        self.0.accept().await
    }
}

// === impl Probes ===

impl Endpoints for Probes {
    fn readiness(&self) -> Vec<String> {
        self.readiness.problem().into_iter().collect()
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }
}

// === impl Shim ===

impl Shim {
    /// Serves a connection until it ends, or is closed to stay within the limit.
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        client: Arc<Client>,
        acceptor: TlsAcceptor,
        drain: Drain,
    ) {
        let close = client.slot.close();
        tokio::select! {
            () = self.handshake(stream, client, acceptor, drain) => {}
            () = close.notified() => tracing::debug!("Closing connection to stay within the limit"),
        }
    }

    async fn handshake(
        self: Arc<Self>,
        stream: TcpStream,
        client: Arc<Client>,
        acceptor: TlsAcceptor,
        drain: Drain,
    ) {
        // Only an optimization.
        let _ = stream.set_nodelay(true);
        match tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                self.http2(stream, client).await;
            }
            Ok(Ok(stream)) => self.http1(stream, client, drain).await,
            // Mostly clients that do not trust the certificate.
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        }
    }

    async fn http2(self: Arc<Self>, stream: TlsStream<TcpStream>, client: Arc<Client>) {
        // GOAWAY names the last request that is served, so clients know which ones to retry.
        let mut stopping = self.stopping.clone();
        let service = service_fn(|request| Arc::clone(&self).respond(request, Arc::clone(&client)));
        let serving = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_concurrent_streams(MAX_STREAMS)
            .keep_alive_interval(PING)
            .serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = stopping.begun() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        log_end(ended);
    }

    async fn http1(
        self: Arc<Self>,
        stream: TlsStream<TcpStream>,
        client: Arc<Client>,
        mut drain: Drain,
    ) {
        let service = service_fn(|request| {
            let response = Arc::clone(&self).respond(request, Arc::clone(&client));
            let stopping = self.stopping.clone();
            async move {
                let mut result = response.await;
                if let Ok(response) = &mut result
                    && stopping.has_begun()
                {
                    response.headers_mut().insert(CONNECTION, CLOSE);
                }
                result
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), service);
        let mut serving = std::pin::pin!(serving);
        let ended = tokio::select! {
            ended = serving.as_mut() => ended,
            () = drain.begun() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        log_end(ended);
    }

    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        client: Arc<Client>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.uri().path() != "/convert" {
            return Ok(text(StatusCode::NOT_FOUND, "not found: use /convert\n"));
        }
        if request.method() != Method::POST {
            return Ok(text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only POST is allowed\n",
            ));
        }
        let begun = Instant::now();
        let reservation = self.memory.reserve(client.source);
        let end = reservation.end();
        let completed = tokio::select! {
            completed = self.review(request.into_body(), &reservation, begun) => completed,
            () = end.notified() => Err(ReadError::Busy),
        };
        Ok(match completed {
            Ok(Ok(body)) => {
                client.slot.completed();
                reserved_response(body, reservation, client.slot.close())
            }
            Ok(Err(error)) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
            Err(error) => self.refuse(error, begun),
        })
    }

    /// Reads and converts a review, within the memory limit.
    async fn review(
        &self,
        body: Incoming,
        reservation: &Reservation,
        begun: Instant,
    ) -> Result<Result<Vec<u8>, InvalidReview>, ReadError> {
        let review = body::read(body, self.limits, reservation).await?;
        reservation
            .grow(review.len() as u64 * CONVERSION_FACTOR)
            .await?;
        Ok(self.convert(&review, begun).await)
    }

    async fn convert(&self, review: &[u8], begun: Instant) -> Result<Vec<u8>, InvalidReview> {
        let response = match self.converter.respond(review).await {
            Ok(response) => response,
            Err(error) => {
                tracing::warn!(%error, "Rejecting malformed review");
                self.count(metrics::Result::Malformed, 0, begun);
                return Err(error);
            }
        };
        let (result, objects) = match &response.result {
            Ok(Converted(count)) => (metrics::Result::Converted, *count),
            Err(Failure::Object(_)) => (metrics::Result::Object, 0),
            Err(Failure::Backend(_)) => (metrics::Result::Backend, 0),
        };
        if let Err(error) = &response.result {
            tracing::warn!(%error, "Conversion failed");
        }
        self.count(result, objects, begun);
        Ok(response.body)
    }

    fn refuse(&self, error: ReadError, begun: Instant) -> Response<Full<Bytes>> {
        let result = match error {
            ReadError::TooLarge(_) | ReadError::TooSlow => Some(metrics::Result::Limit),
            ReadError::Busy => Some(metrics::Result::Busy),
            // The client has disconnected.
            ReadError::Broken => None,
        };
        if let Some(result) = result {
            self.count(result, 0, begun);
        }
        let mut response = text(error.status(), format!("{error}\n"));
        if error == ReadError::Busy {
            // API servers retry after that time.
            response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
        }
        response
    }

    fn count(&self, result: metrics::Result, objects: usize, begun: Instant) {
        self.metrics.completed(result, objects, begun.elapsed());
    }
}

/// A response with memory that is reserved until it is sent. If the client does not read it, the connection is closed: after
/// a timeout, or immediately when the memory is needed.
fn reserved_response(
    body: Vec<u8>,
    reservation: Reservation,
    close: Arc<Notify>,
) -> Response<Full<Bytes>> {
    reservation.shrink_to(body.capacity() as u64);
    let end = reservation.end();
    let (sent, taken) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            _ = taken => return,
            () = end.notified() => {}
            () = tokio::time::sleep(RESPONSE_TIMEOUT) => {}
        }
        close.notify_one();
    });
    let held = ReservedBody {
        body,
        _reservation: reservation,
        _sent: sent,
    };
    admin::response(StatusCode::OK, JSON, Bytes::from_owner(held))
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = support::error::chain(&error), "Connection failed");
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    admin::response(status, TEXT, text)
}

// === impl Held ===

impl AsRef<[u8]> for ReservedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}
