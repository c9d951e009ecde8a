//! Strict HTTP/1.1 request framing, in front of the HTTP library. Bytes in, decisions out, no I/O.
//!
//! HTTP libraries are lenient: they accept bare line feeds and folded lines, and drop a second `Content-Length`. If two
//! parsers can read one request differently, a request can be smuggled past the one that validates. So each head is held
//! until it is complete, and released only if it is unambiguous; the body is followed to its end, so that the next head
//! is found where the HTTP library will look for it.
//!
//! The content of a request is *not* validated here, but in the layers.

mod chunked;
mod head;
mod io;

pub(crate) use io::{Busy, Connection, GateIo, Limits};

use std::borrow::Cow;

use http::StatusCode;

/// Maximum size of a request head, including the request line.
pub const MAX_HEAD: usize = 64 * 1024;
/// Maximum number of header lines.
const MAX_HEADERS: usize = 100;

/// The decision on bytes that were not released yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Release this number of bytes. Never zero.
    Release(usize),
    /// More bytes are needed for a decision.
    More,
    /// The request is invalid or ambiguous.
    Refuse(Violation),
}

/// Why a request was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The status code of the response.
    pub status: StatusCode,
    /// The cause, and what to send instead.
    pub message: Cow<'static, str>,
}

/// Follows the requests of one connection; a new one waits for the first head.
#[derive(Debug, Default)]
pub struct Gate {
    state: State,
}

#[derive(Debug)]
enum State {
    Head(head::Scanner),
    Length(u64),
    Chunked(chunked::Scanner),
    Open,
}

// === impl Violation ===

impl Violation {
    fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }
}

// === impl Gate ===

impl Gate {
    /// Evaluates `pending`: all bytes that have arrived and were not released.
    pub fn step(&mut self, pending: &[u8]) -> Step {
        if pending.is_empty() {
            return Step::More;
        }
        match &mut self.state {
            State::Open => Step::Release(pending.len()),
            State::Head(scanner) => match scanner.scan(pending) {
                Ok(None) => Step::More,
                Ok(Some(head)) => {
                    self.state = State::after(head.framing);
                    Step::Release(head.length)
                }
                Err(violation) => Step::Refuse(violation),
            },
            State::Length(left) => {
                let released = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(pending.len());
                *left -= released as u64;
                if *left == 0 {
                    self.state = State::head();
                }
                Step::Release(released)
            }
            State::Chunked(scanner) => match scanner.scan(pending) {
                Ok(chunked::Found { released: 0, .. }) => Step::More,
                Ok(chunked::Found { released, end }) => {
                    if end {
                        self.state = State::head();
                    }
                    Step::Release(released)
                }
                Err(violation) => Step::Refuse(violation),
            },
        }
    }

    /// Whether the next byte begins a request.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Head(_))
    }

    /// Whether bytes pass unchecked, because the last request was an upgrade.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }
}

// === impl State ===

impl Default for State {
    fn default() -> Self {
        Self::head()
    }
}

impl State {
    fn head() -> Self {
        Self::Head(head::Scanner::default())
    }

    fn after(framing: head::Framing) -> Self {
        match framing {
            head::Framing::None | head::Framing::Length(0) => Self::head(),
            head::Framing::Length(length) => Self::Length(length),
            head::Framing::Chunked => Self::Chunked(chunked::Scanner::default()),
            head::Framing::Upgrade => Self::Open,
        }
    }
}

#[cfg(test)]
mod tests;
