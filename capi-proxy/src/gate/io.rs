//! A socket with a gate: the HTTP library reads only bytes that the gate has released.
//!
//! When the gate rejects a head, the library reads a placeholder request instead, and then the end of the stream. So the
//! rejection is sent in turn, after the responses to earlier requests, by the same code as all responses. When the gate
//! rejects a body, reading that body fails.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Gate, Step, Violation};

/// The method of the request that replaces a rejected one.
const REFUSED: &str = "GATE-REFUSED";
/// The request that replaces a rejected one.
const PLACEHOLDER: &[u8] =
    b"GATE-REFUSED / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
/// How much of a rejected request is read and dropped, so that the client reads the response before a reset.
const LINGER_BYTES: usize = 256 * 1024;
/// How long a rejected request is read and dropped.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// Timeouts for a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the first byte of a head to its last.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// Between two reads of a body.
    pub(crate) body: Duration,
}

/// State shared by the gate and the handler of its requests.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    violation: OnceLock<Violation>,
    busy: AtomicBool,
    held: Mutex<Option<Waker>>,
}

/// Held while a request is processed; the next one waits in the gate until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

/// A socket of which the read side is gated.
#[derive(Debug)]
pub(crate) struct GateIo<S> {
    socket: S,
    gate: Gate,
    connection: Arc<Connection>,
    limits: Limits,
    timer: Option<Timer>,
    /// Bytes that have arrived and were not delivered yet.
    pending: Vec<u8>,
    /// How much of `pending` is released.
    released: usize,
    closed: Option<Closed>,
    linger: Option<Linger>,
}

/// What the library reads after a rejection.
#[derive(Debug, Clone, Copy)]
enum Closed {
    /// The rest of the placeholder, and then the end.
    Placeholder(&'static [u8]),
    /// An error: part of the request has been read.
    Broken,
}

#[derive(Debug)]
struct Timer {
    phase: Phase,
    sleep: Pin<Box<Sleep>>,
}

/// What the client is expected to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Head,
    Body,
}

#[derive(Debug)]
struct Linger {
    left: usize,
    sleep: Pin<Box<Sleep>>,
}

// === impl Violation ===

impl Violation {
    /// The head did not arrive in time.
    fn slow_head() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "timed out waiting for the request head",
        )
    }

    /// The body stopped arriving.
    fn slow_body() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "timed out waiting for the request body",
        )
    }
}

// === impl Connection ===

impl Connection {
    /// Why the gate rejected a request, if it did.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.violation.get()
    }

    /// The violation to report, if a request with this method is the placeholder of a rejected one.
    pub(crate) fn refusal(&self, method: &Method) -> Option<&Violation> {
        self.violation().filter(|_| method.as_str() == REFUSED)
    }

    /// Marks the released request as being processed.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        Busy(Arc::clone(self))
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    fn hold(&self, waker: &Waker) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Relaxed);
        if let Some(waker) = self
            .0
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            waker.wake();
        }
    }
}

// === impl GateIo ===

impl<S> GateIo<S> {
    /// Puts a gate before `socket`.
    pub(crate) fn new(socket: S, connection: Arc<Connection>, limits: Limits) -> Self {
        Self {
            socket,
            gate: Gate::default(),
            connection,
            limits,
            timer: None,
            pending: Vec::new(),
            released: 0,
            closed: None,
            linger: None,
        }
    }

    /// A head that arrives while an earlier request is processed is held: the library does not notice a disconnect while
    /// it has bytes to read.
    fn holds(&self) -> bool {
        self.gate.is_between_requests() && self.connection.is_busy()
    }

    /// How many bytes of `bytes` are released now.
    fn evaluate(&mut self, bytes: &[u8]) -> usize {
        let mut released = 0;
        while released < bytes.len() && !self.holds() && self.closed.is_none() {
            let between = self.gate.is_between_requests();
            match self.gate.step(&bytes[released..]) {
                Step::More => break,
                Step::Release(count) => {
                    released += count;
                    if between {
                        self.connection.busy.store(true, Ordering::Relaxed);
                        self.timer = None;
                    }
                }
                Step::Refuse(violation) if between => self.refuse(violation),
                Step::Refuse(violation) => self.close(violation, Closed::Broken),
            }
        }
        released
    }

    /// Replaces the next request by the placeholder.
    fn refuse(&mut self, violation: Violation) {
        self.connection.busy.store(true, Ordering::Relaxed);
        self.close(violation, Closed::Placeholder(PLACEHOLDER));
    }

    fn close(&mut self, violation: Violation, closed: Closed) {
        // The first violation is reported.
        let _ = self.connection.violation.set(violation);
        self.closed = Some(closed);
    }

    /// Evaluates `pending`; whether there are bytes to deliver.
    fn advance(&mut self) -> bool {
        if self.released == 0 && !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.released = self.evaluate(&pending);
            self.pending = pending;
        }
        self.released > 0
    }

    fn deliver(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.released.min(buf.remaining());
        buf.put_slice(&self.pending[..count]);
        self.released -= count;
        if count == self.pending.len() {
            self.pending = Vec::new();
        } else {
            self.pending.drain(..count);
        }
    }

    /// What the client is expected to send, if nothing can be delivered.
    fn phase(&self) -> Option<Phase> {
        if self.gate.is_open() || self.holds() {
            return None;
        }
        if !self.gate.is_between_requests() {
            return Some(Phase::Body);
        }
        Some(if self.pending.is_empty() {
            Phase::Idle
        } else {
            Phase::Head
        })
    }

    /// Completes when the client has timed out.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Phase> {
        let Some(phase) = self.phase() else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = match &mut self.timer {
            Some(timer) if timer.phase == phase => timer,
            timer => {
                let limit = match phase {
                    Phase::Idle => self.limits.idle,
                    Phase::Head => self.limits.head,
                    Phase::Body => self.limits.body,
                };
                timer.insert(Timer {
                    phase,
                    sleep: Box::pin(sleep_until(Instant::now() + limit)),
                })
            }
        };
        timer.sleep.as_mut().poll(cx).map(|()| phase)
    }
}

impl<S: AsyncRead + Unpin> GateIo<S> {
    /// Reads from the socket into `buf`, and moves what is not released to `pending`; how much has arrived.
    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let fresh = buf.filled().len() - before;
        if self.gate.is_open() {
            return Poll::Ready(Ok(fresh));
        }
        // Only the timeout for a head runs from its first byte.
        if fresh > 0
            && self
                .timer
                .as_ref()
                .is_some_and(|timer| timer.phase != Phase::Head)
        {
            self.timer = None;
        }
        let kept = if self.pending.is_empty() {
            self.evaluate(&buf.filled()[before..])
        } else {
            0
        };
        self.pending
            .extend_from_slice(&buf.filled()[before + kept..]);
        buf.set_filled(before + kept);
        Poll::Ready(Ok(fresh))
    }

    fn poll_gated(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            if self.advance() {
                self.deliver(buf);
                return Poll::Ready(Ok(()));
            }
            match &mut self.closed {
                None => {}
                // The library takes the end for a disconnect, and would not send the response.
                Some(Closed::Placeholder([])) if self.connection.is_busy() => {
                    self.connection.hold(cx.waker());
                    return Poll::Pending;
                }
                Some(Closed::Placeholder(rest)) => {
                    let count = rest.len().min(buf.remaining());
                    buf.put_slice(&rest[..count]);
                    *rest = &rest[count..];
                    return Poll::Ready(Ok(()));
                }
                Some(Closed::Broken) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
            if self.holds() && !self.pending.is_empty() {
                self.connection.hold(cx.waker());
            }
            if self.pending.len() >= super::MAX_HEAD {
                // Only a held head gets this far. It is woken when the earlier request has ended.
                return Poll::Pending;
            }
            match self.poll_socket(cx, buf) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) if buf.filled().len() > before => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => match ready!(self.poll_timer(cx)) {
                    Phase::Idle => return Poll::Ready(Ok(())),
                    Phase::Head => self.refuse(Violation::slow_head()),
                    Phase::Body => self.close(Violation::slow_body(), Closed::Broken),
                },
            }
        }
    }

    /// Reads and drops the rest of a request: closing the socket with unread bytes resets the connection, and the client
    /// may see the reset before the response.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger {
            left: LINGER_BYTES,
            sleep: Box::pin(sleep_until(Instant::now() + LINGER_TIME)),
        });
        let mut scratch = [0; 4096];
        while linger.left > 0 && linger.sleep.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    linger.left = linger.left.saturating_sub(buf.filled().len())
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GateIo<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.gate.is_open() && this.pending.is_empty() {
            return Pin::new(&mut this.socket).poll_read(cx, buf);
        }
        this.poll_gated(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for GateIo<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
        }
        if this.closed.is_some() || !(this.gate.is_between_requests() || this.gate.is_open()) {
            ready!(this.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
