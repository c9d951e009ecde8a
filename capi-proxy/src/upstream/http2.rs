//! HTTP/2 connections, shared by watches only.
//!
//! A connection has fewer streams than the server allows; further watches open more connections. Its flow control window
//! is as large as those of all its streams together, so that a stalled reader does not block the others.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong, Reason};
use http::Response;

use super::connect::{ConnectError, Connected, Stream};
use super::{Limits, Outbound, ResponseBody, SendError};
use crate::credentials::Session;

/// Maximum number of watches on one connection.
const MAX_STREAMS: usize = 64;
/// The fraction of the streams allowed by the server that is used: 3 in 5.
const SHARE: (usize, usize) = (3, 5);
/// Flow control window of a watch.
const STREAM_WINDOW: u32 = 64 * 1024;
/// Flow control window of a connection.
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;
/// Overhead of small frames that the library tolerates before it suspects an attack. Enough for windows that are full of
/// small events.
const FRAME_BUDGET: usize = 16 * 1024 * 1024;
/// Cancelled watches may still receive events. The library closes the whole connection after too many such events,
/// unless counting is disabled.
const MAX_RESETS: usize = 1024;
/// The limit of streams before the server has sent one.
const UNKNOWN_LIMIT: usize = usize::MAX - 1;
/// Number of consecutive checks that must find a connection without streams before it is closed.
const IDLE_LOOKS: u32 = 2;

/// The connections for watches.
#[derive(Debug, Default)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    /// Held while a connection is opened: a burst of watches waits for one connection.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: Mutex<Vec<Arc<Multiplexed>>>,
    /// The epoch in which the server did not negotiate HTTP/2.
    http1_epoch: Mutex<Option<u64>>,
}

#[derive(Debug)]
struct Multiplexed {
    sender: SendRequest<Bytes>,
    epoch: u64,
    streams: AtomicUsize,
    gone: AtomicBool,
}

/// Permits one watch on a connection, until dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    connection: Arc<Multiplexed>,
}

/// A connection for a watch.
#[derive(Debug)]
pub(super) enum Found {
    /// A permit on an existing connection.
    Shared(StreamPermit),
    /// The first permit on a new connection.
    New(StreamPermit),
    /// A new connection to a server that does not support HTTP/2.
    Http1(Connected),
}

// === impl Pool ===

impl Pool {
    /// Whether the server of this session is known not to support HTTP/2.
    pub(super) fn is_http1(&self, session: &Session) -> bool {
        *lock(&self.shared.http1_epoch) == Some(session.epoch)
    }

    /// Finds a connection for a watch, or opens one.
    pub(super) async fn find<C>(
        &self,
        session: &Session,
        wait: Duration,
        connect: C,
    ) -> Result<Found, SendError>
    where
        C: AsyncFnOnce() -> Result<Connected, SendError>,
    {
        if let Some(permit) = self.shared.permit(session.epoch) {
            return Ok(Found::Shared(permit));
        }
        let opening = tokio::time::timeout(wait, self.opening.lock()).await;
        let _opening = opening.map_err(|_| failed(session, ConnectError::Timeout(wait)))?;
        if let Some(permit) = self.shared.permit(session.epoch) {
            return Ok(Found::Shared(permit));
        }
        self.open(session, connect().await?).await
    }

    /// Starts HTTP on a new connection.
    pub(super) async fn open(
        &self,
        session: &Session,
        connected: Connected,
    ) -> Result<Found, SendError> {
        if !connected.stream.is_http2() {
            *lock(&self.shared.http1_epoch) = Some(session.epoch);
            return Ok(Found::Http1(connected));
        }
        let Connected { stream, limits } = connected;
        let begun = tokio::time::timeout(limits.connect, begin(stream)).await;
        let begun = begun.map_err(|_| failed(session, ConnectError::Timeout(limits.connect)))?;
        let (sender, mut connection) =
            begun.map_err(|source| failed(session, ConnectError::Http2 { source }))?;
        let multiplexed = Arc::new(Multiplexed {
            sender,
            epoch: session.epoch,
            streams: AtomicUsize::new(0),
            gone: AtomicBool::new(false),
        });
        let permit = StreamPermit::new(&multiplexed);
        lock(&self.shared.connections).push(Arc::clone(&multiplexed));
        let ping = connection.ping_pong();
        tokio::spawn(run_connection(
            connection,
            ping,
            multiplexed,
            Arc::clone(&self.shared),
            limits,
        ));
        Ok(Found::New(permit))
    }
}

fn failed(session: &Session, source: ConnectError) -> SendError {
    SendError::Connect {
        server: session.endpoint.to_string(),
        source,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs the handshake, after which the stream limit of the server is known.
async fn begin(
    stream: Stream,
) -> Result<(SendRequest<Bytes>, Connection<Stream, Bytes>), h2::Error> {
    let (sender, mut connection) = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .data_frame_budget(FRAME_BUDGET)
        .max_concurrent_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(None)
        .initial_max_send_streams(UNKNOWN_LIMIT)
        .enable_push(false)
        .handshake(stream)
        .await?;
    poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::NO_ERROR.into()))),
        Poll::Pending if connection.max_concurrent_send_streams() == UNKNOWN_LIMIT => Poll::Pending,
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await?;
    Ok((sender, connection))
}

/// Runs a connection until it ends, is found broken, or is no longer needed.
async fn run_connection(
    connection: Connection<Stream, Bytes>,
    ping: Option<PingPong>,
    multiplexed: Arc<Multiplexed>,
    shared: Arc<Shared>,
    limits: Limits,
) {
    tokio::select! {
        // Its streams return the error.
        _ = connection => {}
        () = keep_alive(ping, &multiplexed, &shared, limits) => {}
    }
    multiplexed.gone.store(true, Ordering::Relaxed);
    shared.forget(&multiplexed);
}

/// Returns when the peer does not respond to pings, or the connection has been idle for a while.
async fn keep_alive(
    mut ping: Option<PingPong>,
    multiplexed: &Arc<Multiplexed>,
    shared: &Shared,
    limits: Limits,
) {
    let mut idle = 0;
    loop {
        tokio::time::sleep(limits.ping).await;
        idle = if multiplexed.streams.load(Ordering::Relaxed) == 0 {
            idle + 1
        } else {
            0
        };
        if idle >= IDLE_LOOKS && shared.forget_unused(multiplexed) {
            return;
        }
        if let Some(ping) = &mut ping {
            let responded = tokio::time::timeout(limits.pong, ping.ping(Ping::opaque())).await;
            if !matches!(responded, Ok(Ok(_))) {
                return;
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    /// A permit on the oldest connection that has one, so that later connections drain and close.
    fn permit(&self, epoch: u64) -> Option<StreamPermit> {
        lock(&self.connections)
            .iter()
            .find(|connection| connection.has_capacity(epoch))
            .map(StreamPermit::new)
    }

    fn forget(&self, gone: &Arc<Multiplexed>) {
        lock(&self.connections).retain(|connection| !Arc::ptr_eq(connection, gone));
    }

    /// Removes a connection if it has no streams; it gets none after that.
    fn forget_unused(&self, candidate: &Arc<Multiplexed>) -> bool {
        let mut connections = lock(&self.connections);
        let unused = candidate.streams.load(Ordering::Relaxed) == 0;
        if unused {
            connections.retain(|connection| !Arc::ptr_eq(connection, candidate));
        }
        unused
    }
}

// === impl Multiplexed ===

impl Multiplexed {
    fn has_capacity(&self, epoch: u64) -> bool {
        let limit = stream_limit(self.sender.current_max_send_streams());
        self.epoch == epoch
            && !self.gone.load(Ordering::Relaxed)
            && self.streams.load(Ordering::Relaxed) < limit
    }
}

/// The number of watches on a connection, given the stream limit of the server.
fn stream_limit(allowed: usize) -> usize {
    let (part, of) = SHARE;
    (allowed.min(MAX_STREAMS * of) * part / of).clamp(1, MAX_STREAMS)
}

// === impl Lease ===

impl StreamPermit {
    fn new(connection: &Arc<Multiplexed>) -> Self {
        connection.streams.fetch_add(1, Ordering::Relaxed);
        Self {
            connection: Arc::clone(connection),
        }
    }

    /// Sends a request without a body.
    pub(super) async fn send(
        self,
        session: &Session,
        outbound: Outbound,
    ) -> Result<Response<ResponseBody>, h2::Error> {
        let sent = self
            .connection
            .sender
            .clone()
            .send_request(outbound.into_http2(session), true);
        let responded = match sent {
            Ok((response, _)) => response.await,
            Err(error) => Err(error),
        };
        match responded {
            Ok(response) => Ok(response.map(|body| ResponseBody::http2(body, self))),
            Err(error) => {
                // After GOAWAY a server completes existing streams and accepts no new ones.
                if error.is_go_away() || error.is_io() {
                    self.connection.gone.store(true, Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::stream_limit;

    /// Check W08.
    #[test]
    fn watches_stay_below_three_fifths_of_the_stream_limit() {
        for (allowed, expected) in [
            (1, 1),
            (2, 1),
            (10, 6),
            (100, 60),
            (250, 64),
            (usize::MAX, 64),
        ] {
            assert_eq!(stream_limit(allowed), expected, "{allowed} allowed");
        }
    }
}
