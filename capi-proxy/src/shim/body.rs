//! Reads a review within its limits for size, time, and the memory of all reviews.

use std::fmt;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::memory::{Refused, Reservation};

/// Time in which the minimum rate does not apply.
const GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Minimum average rate of a body in bytes per second, after `GRACE` is over.
const MIN_RATE: u32 = 64 * 1024;

/// Limits of a review.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// Why reading a review failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadError {
    TooLarge(usize),
    TooSlow,
    /// The memory is needed for smaller reviews.
    Busy,
    /// The connection ended, or broke the protocol.
    Broken,
}

/// Reads a body to its end. Every byte is reserved before it is kept.
pub(super) async fn read<B>(
    mut body: B,
    limits: Limits,
    reservation: &Reservation,
) -> Result<Vec<u8>, ReadError>
where
    B: Body<Data = Bytes> + Unpin,
{
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limits.bytes {
        return Err(ReadError::TooLarge(limits.bytes));
    }
    let begun = Instant::now();
    let mut read = Vec::new();
    loop {
        let end = begun + limits.time.min(deadline_at_minimum_rate(read.len()));
        let frame = tokio::time::timeout_at(end, body.frame()).await;
        let Some(frame) = frame.map_err(|_| ReadError::TooSlow)? else {
            return Ok(read);
        };
        let Ok(data) = frame.map_err(|_| ReadError::Broken)?.into_data() else {
            continue;
        };
        if read.len() + data.remaining() > limits.bytes {
            return Err(ReadError::TooLarge(limits.bytes));
        }
        let grown = reservation.grow(data.len() as u64);
        let grown = tokio::time::timeout_at(begun + limits.time, grown).await;
        grown.map_err(|_| ReadError::Busy)??;
        read.extend_from_slice(&data);
    }
}

/// When a body with `bytes` so far must have more to meet the minimum rate.
fn deadline_at_minimum_rate(bytes: usize) -> Duration {
    GRACE_PERIOD + Duration::from_millis(bytes as u64 * 1000 / u64::from(MIN_RATE))
}

// === impl Unread ===

impl ReadError {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(most) => write!(f, "the review exceeds {most} bytes"),
            Self::TooSlow => f.write_str("timed out reading the review"),
            Self::Busy => f.write_str("too many concurrent reviews, try again later"),
            Self::Broken => f.write_str("the review is incomplete"),
        }
    }
}

impl From<Refused> for ReadError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Busy => Self::Busy,
            Refused::TooLarge(most) => Self::TooLarge(usize::try_from(most).unwrap_or(usize::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::net::Ipv4Addr;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::Frame;
    use tokio::time::{Interval, interval};

    use super::super::memory::Memory;
    use super::super::source::Source;
    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 10 * 1024 * 1024,
        time: Duration::from_secs(20),
    };

    /// A body that brings a piece every second.
    struct Drip {
        piece: Bytes,
        left: usize,
        ticks: Interval,
    }

    impl Drip {
        fn new(piece: usize, count: usize) -> Self {
            Self {
                piece: Bytes::from(vec![b'x'; piece]),
                left: count,
                ticks: interval(Duration::from_secs(1)),
            }
        }
    }

    impl Body for Drip {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            std::task::ready!(self.ticks.poll_tick(cx));
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
        }
    }

    async fn run(piece: usize, count: usize, memory: u64) -> (Result<usize, ReadError>, Duration) {
        let memory = Memory::new(memory);
        let source = Source::from(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));
        let reservation = memory.reserve(source);
        let begun = Instant::now();
        let read = read(Drip::new(piece, count), LIMITS, &reservation).await;
        (read.map(|read| read.len()), begun.elapsed())
    }

    /// Check T06.
    #[tokio::test(start_paused = true)]
    async fn a_body_has_a_deadline_and_a_minimum_rate() {
        const PLENTY: u64 = 1 << 40;
        assert_eq!(run(1, 4, PLENTY).await.0, Ok(4), "small and quick enough");
        let (read, took) = run(1, 1000, PLENTY).await;
        assert_eq!(read, Err(ReadError::TooSlow));
        assert!(took < Duration::from_secs(6), "{took:?}");
        let (read, took) = run(100 * 1024, 60, PLENTY).await;
        assert_eq!(
            read,
            Err(ReadError::TooSlow),
            "fast enough, and for too long"
        );
        assert_eq!(took, LIMITS.time);
        let (read, _) = run(6 * 1024 * 1024, 2, PLENTY).await;
        assert_eq!(read, Err(ReadError::TooLarge(LIMITS.bytes)));
    }

    /// Check T06.
    #[tokio::test(start_paused = true)]
    async fn every_byte_of_a_body_is_reserved_before_it_is_kept() {
        assert_eq!(run(1000, 3, 3000).await.0, Ok(3000));
        assert_eq!(run(1000, 3, 2999).await.0, Err(ReadError::TooLarge(2999)));
    }
}
