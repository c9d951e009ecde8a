//! Answers the API server: HTTPS, `POST /convert`, drained on SIGTERM.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::args::ConversionArgs;
use super::certificates::{self, Files, Latest};
use super::convert::{Converted, Converter, Failure};
use super::delegate::{Backends, Limits};
use super::metrics::{self, Metrics};
use super::probe::Readiness;
use super::route::Routes;
use crate::admin::{self, Admin};
use crate::config;
use crate::drain::{self, Drain};
use crate::error::Error;
use crate::listen;
use crate::serve::Signals;
use crate::telemetry;
use crate::translate::Rules;

/// Threads that convert. Parsing a long list takes time that other reviews should not wait for.
const THREADS: usize = 2;
/// How long a handshake, and the head of a request after it, may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long to wait when the system has nothing to accept a connection with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often a silent connection is tried.
const PING: Duration = Duration::from_secs(30);
/// Bytes that the API server may send before we have read them.
const WINDOW: u32 = 4 * 1024 * 1024;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What answers.
#[derive(Debug)]
struct Shim {
    converter: Arc<Converter<Backends>>,
    metrics: Metrics,
    max_review: usize,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &ConversionArgs) -> Result<(), Error> {
    let rules = config::rules(&args.groups)?;
    check(args, &rules)?;
    telemetry::init(&args.logging);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .map_err(Error::system("start a runtime"))?;
    runtime.block_on(serve(args, rules))
}

/// A route for a group without a standard name would never be asked for anything that a backend understands.
fn check(args: &ConversionArgs, rules: &Rules) -> Result<(), Error> {
    use api::group::Side;
    let is_private = |group: &str| {
        let found = rules.table().find(group.as_bytes());
        found.is_some_and(|(_, side)| side == Side::Private)
    };
    match args
        .backends
        .iter()
        .find(|route| !is_private(route.group()))
    {
        None => Ok(()),
        Some(route) => Err(Error::Usage(format!(
            "--backend {}=...: it is no private group of the table: give the private name, or name the pair by --group",
            route.group()
        ))),
    }
}

async fn serve(args: &ConversionArgs, rules: Rules) -> Result<(), Error> {
    let mut signals = Signals::new().map_err(Error::system("handle signals"))?;
    let metrics = Metrics::new();
    let readiness = Arc::new(Readiness::new(metrics.clone()));
    let (latest, shim) = prepare(args, rules, &metrics)?;
    let listener = listen::tcp(args.listen).await?;
    let admin = listen::tcp(args.admin_listen).await?;
    announce(args, &listener, &admin)?;

    let (signal, drain) = drain::channel();
    let converter = Arc::clone(&shim.converter);
    let (asked, interval) = (Arc::clone(&readiness), args.probe_interval.0);
    let asking = tokio::spawn(async move { asked.keep_asking(converter, interval).await });
    tokio::spawn(told(&readiness, &metrics).serve(admin));
    tokio::spawn(accept(listener, latest, Arc::new(shim), drain));

    signals.any().await;
    asking.abort();
    readiness.ending();
    signal.begin();
    if tokio::time::timeout(args.drain_timeout.0, signal.all_ended())
        .await
        .is_err()
    {
        tracing::warn!("Reviews were cut: they did not end in time");
    }
    tracing::info!("Ended");
    Ok(())
}

fn prepare(
    args: &ConversionArgs,
    rules: Rules,
    metrics: &Metrics,
) -> Result<(Latest, Shim), Error> {
    let latest = certificates::load(Files {
        certificate: args.tls_cert_file.clone(),
        key: args.tls_key_file.clone(),
        authority: args.backend_ca.clone(),
    })
    .map_err(|error| Error::Usage(error.to_string()))?;
    let routes = Routes::new(args.backends.iter().cloned());
    let limits = Limits {
        timeout: args.backend_timeout.0,
        answer: args.max_review,
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
        max_review: args.max_review,
    };
    Ok((latest, shim))
}

fn told(readiness: &Arc<Readiness>, metrics: &Metrics) -> Admin {
    let (readiness, metrics) = (Arc::clone(readiness), metrics.clone());
    Admin {
        problem: Box::new(move || readiness.problem()),
        metrics: Box::new(move || metrics.render()),
    }
}

fn announce(
    args: &ConversionArgs,
    listener: &TcpListener,
    admin: &TcpListener,
) -> Result<(), Error> {
    let address = listener.local_addr().unwrap_or(args.listen);
    let admin = admin.local_addr().unwrap_or(args.admin_listen);
    tracing::info!(%address, "Serving the API server");
    tracing::info!(address = %admin, "Serving probes and metrics");
    match &args.address_file {
        Some(path) => listen::announce_as(path, vec![address.to_string()], admin),
        None => Ok(()),
    }
}

/// Accepts connections until the drain begins.
async fn accept(listener: TcpListener, latest: Latest, shim: Arc<Shim>, mut drain: Drain) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.begun() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let acceptor = TlsAcceptor::from(latest.borrow().server.clone());
                tokio::spawn(Arc::clone(&shim).connection(stream, acceptor, drain.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "Connection cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

// === impl Shim ===

impl Shim {
    async fn connection(self: Arc<Self>, stream: TcpStream, acceptor: TlsAcceptor, drain: Drain) {
        // Only a matter of speed.
        let _ = stream.set_nodelay(true);
        match tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                self.http2(stream, drain).await;
            }
            Ok(Ok(stream)) => self.http1(stream, drain).await,
            // Mostly those who do not trust us.
            Ok(Err(error)) => tracing::debug!(%error, "Handshake failed"),
            Err(_) => tracing::debug!("Handshake took too long"),
        }
    }

    async fn http2(self: Arc<Self>, stream: TlsStream<TcpStream>, mut drain: Drain) {
        let service = service_fn(|request| Arc::clone(&self).answer(request));
        let serving = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .keep_alive_interval(PING)
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

    async fn http1(self: Arc<Self>, stream: TlsStream<TcpStream>, mut drain: Drain) {
        let service = service_fn(|request| Arc::clone(&self).answer(request));
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
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

    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.uri().path() != "/convert" {
            return Ok(text(StatusCode::NOT_FOUND, "there is /convert\n"));
        }
        if request.method() != Method::POST {
            return Ok(text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only POST is served\n",
            ));
        }
        let begun = Instant::now();
        let body = Limited::new(request.into_body(), self.max_review);
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                self.count(metrics::Result::Malformed, 0, begun);
                let message = format!("the review has more than {} bytes\n", self.max_review);
                return Ok(text(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            // Nobody is there any more to read an answer.
            Err(_) => return Ok(text(StatusCode::BAD_REQUEST, "the review has no end\n")),
        };
        Ok(self.convert(&body, begun).await)
    }

    async fn convert(&self, body: &[u8], begun: Instant) -> Response<Full<Bytes>> {
        let answer = match self.converter.answer(body).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "Malformed review");
                self.count(metrics::Result::Malformed, 0, begun);
                return text(StatusCode::BAD_REQUEST, format!("{error}\n"));
            }
        };
        let (result, objects) = match &answer.result {
            Ok(Converted(count)) => (metrics::Result::Converted, *count),
            Err(Failure::Object(_)) => (metrics::Result::Object, 0),
            Err(Failure::Backend(_)) => (metrics::Result::Backend, 0),
        };
        if let Err(error) = &answer.result {
            tracing::warn!(%error, "Conversion failed");
        }
        self.count(result, objects, begun);
        admin::answer(StatusCode::OK, JSON, answer.body)
    }

    fn count(&self, result: metrics::Result, objects: usize, begun: Instant) {
        self.metrics.answered(result, objects, begun.elapsed());
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = crate::error::chain(&error), "Connection failed");
    }
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    admin::answer(status, TEXT, text)
}
