//! The listener of a proxy: accepts a limited number of connections, until the shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use support::accept;
use support::admin;
use support::args::Address;
use support::shutdown::Drain;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::stream::tune;
use crate::tool::LogFilter;

/// Maximum number of connections. Others wait in the backlog of the kernel.
const MAX_CONNECTIONS: usize = 1024;

/// The port cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "failed to listen on port {port}: stop the other process of the pod that uses it, or set --serving-port"
)]
pub(crate) struct ListenError {
    port: u16,
    source: io::Error,
}

/// What a connection holds until it ends: its place among the connections, and the shutdown that waits for it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) drain: Drain,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Logs failed connections, without repeating the last message.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<LogFilter>);

/// Opens the listener, on all addresses of the pod.
pub(crate) async fn listen(port: u16) -> Result<TcpListener, ListenError> {
    admin::listen(Address::All(port))
        .await
        .map_err(|source| ListenError { port, source })
}

/// Serves connections, each in a task of its own. Connections that are open at the shutdown continue.
pub(crate) async fn run<F>(
    listener: TcpListener,
    drain: Drain,
    serve: impl Fn(TcpStream, Arc<Slot>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let address = listener
        .local_addr()
        .map(|address: SocketAddr| address.to_string());
    tracing::info!(address = address.unwrap_or_default(), "Listening");
    let permits = Some(Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    let mut until = drain.clone();
    let shutdown = async move { until.begun().await };
    accept::run(listener, permits, shutdown, |stream, permit| {
        // Options that cannot be set are those of a connection that has ended.
        let _ = tune(&stream);
        let slot = Slot {
            drain: drain.clone(),
            _permit: permit,
        };
        tokio::spawn(serve(stream, Arc::new(slot)));
    })
    .await;
}

// === impl Failures ===

impl Failures {
    /// Logs a failure.
    pub(crate) fn log(&self, error: &str) {
        let mut filter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if filter.is_new(error) {
            tracing::warn!(error, "Failed to open a connection");
        } else {
            tracing::debug!(error, "Failed to open a connection again");
        }
    }
}
