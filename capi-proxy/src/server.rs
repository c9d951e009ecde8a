//! Accepts client connections, dispatches them to worker threads, and serves them.

use std::io;
use std::sync::Arc;
use std::thread;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use support::accept;
use support::shutdown::Drain;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::error::Error;
use crate::gate::{self, GateIo};
use crate::listen::{Accepted, Listener, Socket};
use crate::stack::Proxy;

/// Maximum number of client connections; further ones wait in the backlog.
const MAX_CONNECTIONS: usize = 8192;
/// Buffer for reads and writes; larger than the largest head that the gate accepts.
const BUFFER: usize = gate::MAX_HEAD + 8 * 1024;

/// The worker threads.
#[derive(Debug)]
pub(crate) struct Workers {
    queues: Vec<mpsc::UnboundedSender<Connection>>,
    permits: Arc<Semaphore>,
}

/// A connection for a worker.
#[derive(Debug)]
struct Connection {
    accepted: Accepted,
    permit: Option<OwnedSemaphorePermit>,
}

// === impl Workers ===

impl Workers {
    /// Starts `count` threads, each with its own proxy, so that a request never leaves its thread.
    pub(crate) fn start(
        count: usize,
        limits: gate::Limits,
        make: impl Fn() -> Proxy,
    ) -> Result<Self, Error> {
        let mut queues = Vec::with_capacity(count);
        for index in 0..count {
            let (queue, connections) = mpsc::unbounded_channel();
            let runtime = runtime().map_err(Error::system("start a runtime"))?;
            let proxy = make();
            thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || runtime.block_on(run_worker(proxy, connections, limits)))
                .map_err(Error::system("start a thread"))?;
            queues.push(queue);
        }
        Ok(Self {
            queues,
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        })
    }

    /// Accepts connections until the drain begins, and dispatches them to the workers.
    pub(crate) async fn accept(self: Arc<Self>, listener: Listener, mut drain: Drain) {
        let permits = Some(Arc::clone(&self.permits));
        let mut turn = 0;
        let dispatch = |accepted, permit| {
            turn = (turn + 1) % self.queues.len();
            // A worker ends only with the process.
            let _ = self.queues[turn].send(Connection { accepted, permit });
        };
        accept::run(listener, permits, drain.begun(), dispatch).await;
    }
}

/// A runtime for one thread.
pub(crate) fn runtime() -> io::Result<tokio::runtime::Runtime> {
    // DNS lookups run on blocking threads.
    tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(2)
        .enable_all()
        .build()
}

/// Serves the connections of this thread.
async fn run_worker(
    proxy: Proxy,
    mut connections: mpsc::UnboundedReceiver<Connection>,
    limits: gate::Limits,
) {
    let proxy = Arc::new(proxy);
    tokio::spawn(maintain_connections(Arc::clone(&proxy)));
    while let Some(Connection { accepted, permit }) = connections.recv().await {
        let proxy = Arc::clone(&proxy);
        match accepted.into_socket() {
            Ok(Socket::Tcp(stream)) => drop(tokio::spawn(serve(proxy, stream, limits, permit))),
            Ok(Socket::Unix(stream)) => drop(tokio::spawn(serve(proxy, stream, limits, permit))),
            Err(error) => tracing::warn!(%error, "Failed to serve connection"),
        }
    }
    // The process is shutting down, and waits for the connections, which hold the drain.
    drop(proxy);
    std::future::pending::<()>().await;
}

/// Closes idle connections of this thread to the API server until the drain begins.
async fn maintain_connections(proxy: Arc<Proxy>) {
    let mut drain = proxy.drain.clone();
    tokio::select! {
        () = proxy.upstream.close_idle_connections() => {}
        () = drain.begun() => {}
    }
}

/// Serves a connection until the client disconnects, or its responses have ended after the drain has begun.
async fn serve<S>(
    proxy: Arc<Proxy>,
    stream: S,
    limits: gate::Limits,
    permit: Option<OwnedSemaphorePermit>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut drain = proxy.drain.clone();
    let connection = Arc::new(gate::Connection::default());
    let io = TokioIo::new(GateIo::new(stream, Arc::clone(&connection), limits));
    let service = service_fn(move |request: Request<Incoming>| {
        // On the heap, so that a watch does not hold the memory that its setup needed.
        Box::pin(Arc::clone(&proxy).handle(request, Arc::clone(&connection)))
    });
    let serving = Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(io, service)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = drain.begun() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        // Mostly clients that have gone away.
        tracing::debug!(error = support::error::chain(&error), "Connection failed");
    }
    drop(permit);
}
