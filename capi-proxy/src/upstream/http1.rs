//! HTTP/1.1 connections, each for one request at a time, kept for the next one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;

use super::connect::Connected;
use super::{Answer, Outgoing};

/// Most connections kept for later, for each thread.
const MAX_IDLE: usize = 32;
/// How long a connection is kept for later.
const MAX_IDLE_TIME: Duration = Duration::from_mins(1);
/// Most bytes read or written at once, and the largest head of an answer.
const BUFFER: usize = 32 * 1024;

/// Connections that wait for a request.
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

/// A connection for the one who holds it.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Outgoing>,
    epoch: u64,
    pool: Arc<Pool>,
}

/// A request had no answer.
pub(super) struct SendError {
    /// The request, if not a byte of it was written.
    pub(super) unsent: Option<Box<Request<Outgoing>>>,
    pub(super) source: hyper::Error,
}

// === impl Pool ===

impl Pool {
    /// The connection that was used last.
    pub(super) fn take(self: &Arc<Self>, epoch: u64) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.is_fit(epoch));
        // One that has just been given back may not have come to rest yet.
        let at = idle.iter().rposition(|idle| idle.sender.is_ready())?;
        let Idle { sender, epoch, .. } = idle.remove(at);
        Some(Connection {
            sender,
            epoch,
            pool: Arc::clone(self),
        })
    }

    /// Begins HTTP on a fresh connection.
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
            // Its requests hear of an error.
            let _ = connection.await;
        });
        Ok(Connection {
            sender,
            epoch,
            pool: Arc::clone(self),
        })
    }

    /// Closes what has waited long enough, and what belongs to an earlier epoch.
    pub(super) fn sweep(&self, epoch: Option<u64>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.is_fit(epoch.unwrap_or(idle.epoch)));
        idle.shrink_to_fit();
    }
}

// === impl Idle ===

impl Idle {
    fn is_fit(&self, epoch: u64) -> bool {
        self.epoch == epoch && !self.sender.is_closed() && self.since.elapsed() < MAX_IDLE_TIME
    }
}

// === impl Connection ===

impl Connection {
    /// Sends a request. The connection comes back to its pool when the answer's body has been read.
    pub(super) async fn send(
        mut self,
        request: Request<Outgoing>,
    ) -> Result<Response<Answer>, SendError> {
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response.map(|body| Answer::http1(body, self))),
            Err(mut error) => Err(SendError {
                unsent: error.take_message().map(Box::new),
                source: error.into_error(),
            }),
        }
    }

    pub(super) fn give_back(self) {
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

/// Sends a request that asks for another protocol.
pub(super) async fn upgrade(
    connected: Connected,
    request: Request<Outgoing>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = Builder::new()
        .max_buf_size(BUFFER)
        .handshake(TokioIo::new(connected.stream))
        .await?;
    tokio::spawn(async move {
        // The request hears of an error, and so does the tunnel.
        let _ = connection.with_upgrades().await;
    });
    sender.send_request(request).await
}
