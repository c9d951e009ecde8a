//! Strict HTTP/1.1 request framing, in front of the HTTP library: bytes in, verdicts out, no I/O.
//!
//! HTTP libraries are lenient: they take a bare line feed for a line's end, fold lines, drop a second
//! `Content-Length`. Wherever two readers of one request can differ, a request can be smuggled past the one that
//! checks. So each head is held back until it is complete, and is let through only if there is one way to read it;
//! its body is followed to its end, so that the next head is found where the HTTP library will look for it.
//!
//! What this does *not* judge is what a request asks for: that is the business of the layers.

mod chunked;
mod head;
mod io;

pub(crate) use io::{Busy, Connection, GateIo, Limits};

use std::borrow::Cow;

use http::StatusCode;

/// Largest request head, with its request line.
pub const MAX_HEAD: usize = 64 * 1024;
/// Most header lines in a head.
const MAX_HEADERS: usize = 100;

/// What is to be done with the bytes that have arrived and were not released yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// That many of them may go on. Never zero.
    Release(usize),
    /// They do not suffice for a verdict.
    More,
    /// They are not one unambiguous request.
    Refuse(Violation),
}

/// Why the gate closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The answer's status code.
    pub status: StatusCode,
    /// What was wrong, and what to send instead.
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
    /// Judges `pending`: all bytes that have arrived and were not released.
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

    /// The next byte begins a request.
    pub fn is_between_requests(&self) -> bool {
        matches!(self.state, State::Head(_))
    }

    /// Bytes are no longer looked at: the last request asked for another protocol.
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
