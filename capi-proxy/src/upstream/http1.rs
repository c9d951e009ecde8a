//! A pool of HTTP/1.1 connections, each for one request at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Connected;
use super::{Outgoing, ResponseBody};

/// Maximum number of idle connections per thread.
const MAX_IDLE: usize = 32;
/// Idle timeout of a connection.
const MAX_IDLE_TIME: Duration = Duration::from_mins(1);
/// Buffer for reads and writes, and the largest response head.
const BUFFER: usize = 32 * 1024;

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Outgoing>,
    epoch: u64,
    since: Instant,
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Outgoing>,
    epoch: u64,
    pool: Arc<Pool>,
}

/// A request got no response.
pub(super) struct SendError {
    /// The request, if no byte of it was written.
    pub(super) unsent: Option<Box<Request<Outgoing>>>,
    pub(super) source: hyper::Error,
}

// === impl Pool ===

impl Pool {
    /// Takes the most recently used connection.
    pub(super) fn take(self: &Arc<Self>, epoch: u64) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.is_reusable(epoch));
        // One that has just been released may not be ready yet.
        let at = idle.iter().rposition(|idle| idle.sender.is_ready())?;
        let Idle { sender, epoch, .. } = idle.remove(at);
        Some(Connection {
            sender,
            epoch,
            pool: Arc::clone(self),
        })
    }

    /// Starts HTTP on a new connection.
    pub(super) async fn open(
        self: &Arc<Self>,
        connected: Connected,
        epoch: u64,
    ) -> Result<Connection, hyper::Error> {
        let (sender, connection) = Builder::new()
            .max_buf_size(BUFFER)
            .handshake(TokioIo::new(connected.stream))
            .await?;
        tokio::spawn(async move {
            // Its requests return the error.
            let _ = connection.await;
        });
        Ok(Connection {
            sender,
            epoch,
            pool: Arc::clone(self),
        })
    }

    /// Closes connections that have been idle too long, or belong to an earlier epoch.
    pub(super) fn close_expired(&self, epoch: Option<u64>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.is_reusable(epoch.unwrap_or(idle.epoch)));
        idle.shrink_to_fit();
    }
}

// === impl Idle ===

impl Idle {
    fn is_reusable(&self, epoch: u64) -> bool {
        self.epoch == epoch && !self.sender.is_closed() && self.since.elapsed() < MAX_IDLE_TIME
    }
}

// === impl Connection ===

impl Connection {
    /// Sends a request. The connection is released to its pool when the response body has been read.
    pub(super) async fn send(
        mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<ResponseBody>, SendError> {
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response.map(|body| ResponseBody::http1(body, self))),
            Err(mut error) => Err(SendError {
                unsent: error.take_message().map(Box::new),
                source: error.into_error(),
            }),
        }
    }

    pub(super) fn release(self) {
        let Self {
            sender,
            epoch,
            pool,
        } = self;
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !sender.is_closed() {
            idle.push(Idle {
                sender,
                epoch,
                since: Instant::now(),
            });
        }
    }
}

/// Sends an upgrade request.
pub(super) async fn upgrade(
    connected: Connected,
    request: Request<Outgoing>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = Builder::new()
        .max_buf_size(BUFFER)
        .handshake(TokioIo::new(connected.stream))
        .await?;
    tokio::spawn(async move {
        // The request and the tunnel return the error.
        let _ = connection.with_upgrades().await;
    });
    sender.send_request(request).await
}
