//! HTTP/2 connections, shared by watches and by nothing else.
//!
//! A connection takes fewer streams than the server allows; more watches open more connections. Its flow control window
//! holds the windows of all its streams, so that one reader that has stopped does not stop the others.

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
use super::{Answer, Limits, Outbound, SendError};
use crate::credentials::Session;

/// Most watches on one connection.
const MAX_STREAMS: usize = 64;
/// Of the streams that a server allows, how many are used: 3 in 5.
const SHARE: (usize, usize) = (3, 5);
/// Most bytes on their way to one watch.
const STREAM_WINDOW: u32 = 64 * 1024;
/// Most bytes on their way to all watches of a connection.
const CONNECTION_WINDOW: u32 = 64 * STREAM_WINDOW;
/// What the library may spend on keeping small pieces apart before it takes them for an attack. Enough for every window
/// of a connection to be full of small events.
const FRAME_BUDGET: usize = 16 * 1024 * 1024;
/// Watches that were given up, of which events may still arrive. The library gives up the whole connection when such
/// events have come too often in its life, unless counting is disabled.
const MAX_RESETS: usize = 1024;
/// Stands for a limit that the server has not sent yet.
const UNKNOWN_LIMIT: usize = usize::MAX - 1;
/// How many looks in a row must find a connection without streams before it is closed.
const IDLE_LOOKS: u32 = 2;

/// The connections for watches.
#[derive(Debug, Default)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    /// Held while a connection is opened: watches begin in bursts, and the burst waits for one connection.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: Mutex<Vec<Arc<Multiplexed>>>,
    /// The epoch in which the server was found not to support HTTP/2.
    http1_epoch: Mutex<Option<u64>>,
}

#[derive(Debug)]
struct Multiplexed {
    sender: SendRequest<Bytes>,
    epoch: u64,
    streams: AtomicUsize,
    gone: AtomicBool,
}

/// A place for one watch; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Multiplexed>,
}

/// What there is for a watch.
#[derive(Debug)]
pub(super) enum Found {
    /// A place beside others.
    Shared(Lease),
    /// The first place on a new connection.
    Fresh(Lease),
    /// A new connection to a server that does not support HTTP/2.
    Http1(Connected),
}

// === impl Pool ===

impl Pool {
    /// The server of this session is known not to support HTTP/2.
    pub(super) fn is_http1(&self, session: &Session) -> bool {
        *lock(&self.shared.http1_epoch) == Some(session.epoch)
    }

    /// Finds a place for a watch, on a new connection if there is none.
    pub(super) async fn find<C>(
        &self,
        session: &Session,
        wait: Duration,
        connect: C,
    ) -> Result<Found, SendError>
    where
        C: AsyncFnOnce() -> Result<Connected, SendError>,
    {
        if let Some(lease) = self.shared.lease(session.epoch) {
            return Ok(Found::Shared(lease));
        }
        let opening = tokio::time::timeout(wait, self.opening.lock()).await;
        let _opening = opening.map_err(|_| failed(session, ConnectError::Timeout(wait)))?;
        if let Some(lease) = self.shared.lease(session.epoch) {
            return Ok(Found::Shared(lease));
        }
        self.open(session, connect().await?).await
    }

    /// Begins HTTP on a fresh connection.
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
        let lease = Lease::new(&multiplexed);
        lock(&self.shared.connections).push(Arc::clone(&multiplexed));
        let ping = connection.ping_pong();
        tokio::spawn(drive(
            connection,
            ping,
            multiplexed,
            Arc::clone(&self.shared),
            limits,
        ));
        Ok(Found::Fresh(lease))
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

/// Exchanges settings: how many streams the server allows is known afterwards.
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

/// Keeps a connection going until it ends, is found dead, or is not needed any more.
async fn drive(
    connection: Connection<Stream, Bytes>,
    ping: Option<PingPong>,
    multiplexed: Arc<Multiplexed>,
    shared: Arc<Shared>,
    limits: Limits,
) {
    tokio::select! {
        // Its streams hear of an error.
        _ = connection => {}
        () = look_after(ping, &multiplexed, &shared, limits) => {}
    }
    multiplexed.gone.store(true, Ordering::Relaxed);
    shared.forget(&multiplexed);
}

/// Returns when the peer does not answer, or when the connection has not been used for a while.
async fn look_after(
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
            let answered = tokio::time::timeout(limits.pong, ping.ping(Ping::opaque())).await;
            if !matches!(answered, Ok(Ok(_))) {
                return;
            }
        }
    }
}

// === impl Shared ===

impl Shared {
    /// A place on the oldest connection that has one: later ones then drain and close.
    fn lease(&self, epoch: u64) -> Option<Lease> {
        lock(&self.connections)
            .iter()
            .find(|connection| connection.has_room(epoch))
            .map(Lease::new)
    }

    fn forget(&self, gone: &Arc<Multiplexed>) {
        lock(&self.connections).retain(|connection| !Arc::ptr_eq(connection, gone));
    }

    /// Forgets a connection if it has no streams; it gets none after that.
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
    fn has_room(&self, epoch: u64) -> bool {
        let limit = places(self.sender.current_max_send_streams());
        self.epoch == epoch
            && !self.gone.load(Ordering::Relaxed)
            && self.streams.load(Ordering::Relaxed) < limit
    }
}

/// How many watches a connection takes, of the streams that its server allows.
fn places(allowed: usize) -> usize {
    let (part, of) = SHARE;
    (allowed.min(MAX_STREAMS * of) * part / of).clamp(1, MAX_STREAMS)
}

// === impl Lease ===

impl Lease {
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
    ) -> Result<Response<Answer>, h2::Error> {
        let sent = self
            .connection
            .sender
            .clone()
            .send_request(outbound.into_http2(session), true);
        let answered = match sent {
            Ok((response, _)) => response.await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(response) => Ok(response.map(|body| Answer::http2(body, self))),
            Err(error) => {
                // A server that says goodbye finishes what has begun, and takes nothing new.
                if error.is_go_away() || error.is_io() {
                    self.connection.gone.store(true, Ordering::Relaxed);
                }
                Err(error)
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.connection.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    /// Check W08.
    #[test]
    fn watches_stay_below_four_fifths_of_the_stream_limit() {
        for (allowed, expected) in [
            (1, 1),
            (2, 1),
            (10, 6),
            (100, 60),
            (250, 64),
            (usize::MAX, 64),
        ] {
            assert_eq!(places(allowed), expected, "{allowed} allowed");
        }
    }
}
