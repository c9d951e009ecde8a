//! Bodies that are one piece repeated: cheap to send at any size, and comparable to the byte at any chunking.

use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::{Result, bail};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};

/// How much of a body is handed to the server's connection at a time, about.
const BLOCK: usize = 64 * 1024;

/// `head`, then `unit` so many times, then `tail`.
#[derive(Debug, Clone)]
pub struct Pattern {
    head: Bytes,
    unit: Bytes,
    times: u64,
    tail: Bytes,
}

/// Compares a body that arrives in pieces with the one that is expected.
#[derive(Debug)]
pub struct Comparison<'p> {
    pattern: &'p Pattern,
    at: u64,
}

/// A pattern as the body of a response of unknown length, the way the API server streams a list.
#[derive(Debug)]
pub struct PatternBody {
    rest: std::vec::IntoIter<(Bytes, u64)>,
    current: (Bytes, u64),
}

// === impl Pattern ===

impl Pattern {
    /// A body of these parts.
    pub fn new(
        head: impl Into<Bytes>,
        unit: impl Into<Bytes>,
        times: u64,
        tail: impl Into<Bytes>,
    ) -> Self {
        Self {
            head: head.into(),
            unit: unit.into(),
            times,
            tail: tail.into(),
        }
    }

    /// A body without repetition.
    pub fn plain(text: impl Into<Bytes>) -> Self {
        Self::new(text, Bytes::new(), 0, Bytes::new())
    }

    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.units_end() + size(&self.tail)
    }

    /// Whether it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The body in one piece.
    pub fn to_bytes(&self) -> Bytes {
        let mut whole = BytesMut::new();
        whole.extend_from_slice(&self.head);
        for _ in 0..self.times {
            whole.extend_from_slice(&self.unit);
        }
        whole.extend_from_slice(&self.tail);
        whole.freeze()
    }

    /// The body for a server to send.
    pub fn to_body(&self) -> PatternBody {
        let per_block = (BLOCK / self.unit.len().max(1)).max(1);
        let block: Bytes = self.unit.repeat(per_block).into();
        let per_block = per_block as u64;
        let parts = vec![
            (self.head.clone(), 1),
            (block, self.times / per_block),
            (self.unit.clone(), self.times % per_block),
            (self.tail.clone(), 1),
        ];
        PatternBody {
            rest: parts.into_iter(),
            current: (Bytes::new(), 0),
        }
    }

    /// Starts a comparison with this body.
    pub fn compare(&self) -> Comparison<'_> {
        Comparison {
            pattern: self,
            at: 0,
        }
    }

    fn units_end(&self) -> u64 {
        size(&self.head) + size(&self.unit) * self.times
    }

    /// What is expected at `at`, up to the end of the part that it lies in. Empty at the end.
    fn expected(&self, at: u64) -> &[u8] {
        let head = size(&self.head);
        if at < head {
            return &self.head[index(at)..];
        }
        if at < self.units_end() {
            return &self.unit[index((at - head) % size(&self.unit))..];
        }
        self.tail
            .get(index(at - self.units_end())..)
            .unwrap_or_default()
    }
}

fn size(part: &Bytes) -> u64 {
    part.len() as u64
}

/// An offset into a part.
fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("invariant: a part is in memory")
}

// === impl Comparison ===

impl Comparison<'_> {
    /// Takes the next piece of the body.
    pub fn feed(&mut self, mut piece: &[u8]) -> Result<()> {
        while !piece.is_empty() {
            let expected = self.pattern.expected(self.at);
            let length = expected.len().min(piece.len());
            if length == 0 {
                bail!("the response is longer than {} bytes", self.pattern.len());
            }
            if piece[..length] != expected[..length] {
                bail!(
                    "the response is wrong {}",
                    difference(self.at, &piece[..length], expected)
                );
            }
            self.at += length as u64;
            piece = &piece[length..];
        }
        Ok(())
    }

    /// Ends the comparison.
    pub fn end(self) -> Result<()> {
        let expected = self.pattern.len();
        if self.at < expected {
            bail!("the response ends after {} of {expected} bytes", self.at);
        }
        Ok(())
    }
}

/// Where and how two pieces differ, human-readable.
fn difference(at: u64, found: &[u8], expected: &[u8]) -> String {
    let same = found
        .iter()
        .zip(expected)
        .take_while(|(a, b)| a == b)
        .count();
    let excerpt = |text: &[u8]| {
        String::from_utf8_lossy(&text[same.saturating_sub(20)..text.len().min(same + 20)])
            .into_owned()
    };
    format!(
        "at byte {}: {:?} instead of {:?}",
        at + same as u64,
        excerpt(found),
        excerpt(expected)
    )
}

// === impl PatternBody ===

impl http_body::Body for PatternBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        while self.current.1 == 0 || self.current.0.is_empty() {
            match self.rest.next() {
                Some(part) => self.current = part,
                None => return Poll::Ready(None),
            }
        }
        self.current.1 -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.current.0.clone()))))
    }

    fn size_hint(&self) -> SizeHint {
        // Unknown on purpose: the API server streams large lists in chunks.
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn pattern() -> Pattern {
        Pattern::new("[0", ",12345", 30_000, "]\n")
    }

    #[test]
    fn any_split_of_the_right_body_is_accepted() {
        let pattern = pattern();
        let whole = pattern.to_bytes();
        assert_eq!(whole.len() as u64, pattern.len());
        for split in [1, 2, 3, 7, 4096, whole.len()] {
            let mut comparison = pattern.compare();
            for piece in whole.chunks(split) {
                comparison.feed(piece).unwrap();
            }
            comparison.end().unwrap();
        }
    }

    #[test]
    fn wrong_long_and_short_bodies_are_rejected() {
        let pattern = pattern();
        let whole = pattern.to_bytes();
        let mut wrong = whole.to_vec();
        wrong[100_000] ^= 1;
        let error = pattern.compare().feed(&wrong).unwrap_err();
        assert!(error.to_string().contains("byte 100000"), "{error}");

        let long = [&whole[..], b"x"].concat();
        let error = pattern.compare().feed(&long).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");

        let mut comparison = pattern.compare();
        comparison.feed(&whole[..whole.len() - 1]).unwrap();
        let error = comparison.end().unwrap_err();
        assert!(error.to_string().contains("ends after"), "{error}");
    }

    #[tokio::test]
    async fn the_server_sends_the_same_bytes() {
        let pattern = pattern();
        let sent = pattern.to_body().collect().await.unwrap().to_bytes();
        assert_eq!(sent, pattern.to_bytes());
    }
}
