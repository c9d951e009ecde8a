//! Watches: each event is timed by the stamp that the server put into it, and compared.

use std::ops::ControlFlow;

use anyhow::{Context, Result, bail};

use super::caller;
use crate::clock;
use crate::fixture::Fixture;
use crate::http1::{Connection, LARGE, SMALL};
use crate::wire::Target;

/// A watch that has been requested.
#[derive(Debug)]
pub(super) struct Watcher {
    connection: Connection,
    fixture: Fixture,
}

// === impl Watcher ===

impl Watcher {
    /// Starts a watch of so many events.
    pub(super) fn open(target: &Target, events: usize, interval_micros: u64) -> Result<Self> {
        Self::ask(
            target,
            LARGE,
            &format!("&events={events}&intervalMicros={interval_micros}"),
        )
    }

    /// A watch without events, after its bookmark has arrived.
    pub(super) fn idle(target: &Target) -> Result<Connection> {
        let mut watcher = Self::ask(target, SMALL, "")?;
        watcher.receive(0)?;
        Ok(watcher.connection)
    }

    fn ask(target: &Target, buffer: usize, parameters: &str) -> Result<Self> {
        let fixture = Fixture::new(target.spelling);
        let query = format!("allowWatchBookmarks=true&timeoutSeconds=600&watch=true{parameters}");
        let request = caller::get(target, &format!("{}?{query}", fixture.machines()))?;
        let mut connection = Connection::open(target, buffer)?;
        connection.send(request.as_bytes())?;
        Ok(Self {
            connection,
            fixture,
        })
    }

    /// Receives the bookmark and so many events; gives the events' times on the way, in nanoseconds.
    pub(super) fn receive(&mut self, events: usize) -> Result<Vec<u64>> {
        let (bookmark, event) = (self.fixture.bookmark(), self.fixture.event());
        let mut delays = Vec::with_capacity(events);
        let mut lines = Lines::default();
        let mut bookmarks = 0;
        self.connection.response(|piece| {
            let arrived = clock::now();
            lines.feed(piece, |line| {
                if bookmarks == 0 {
                    bookmarks += 1;
                    return compare_bookmark(line, &bookmark);
                }
                let stamp = event.stamp_of(line).with_context(|| wrong("event", line))?;
                delays.push(arrived.saturating_sub(stamp));
                Ok(())
            })?;
            let complete = bookmarks == 1 && delays.len() == events;
            Ok(if complete {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        if bookmarks == 0 || delays.len() != events {
            bail!("the watch ended after {} of {events} events", delays.len());
        }
        Ok(delays)
    }
}

fn compare_bookmark(line: &[u8], expected: &[u8]) -> Result<()> {
    if line != expected {
        bail!(wrong("bookmark", line));
    }
    Ok(())
}

fn wrong(what: &str, line: &[u8]) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    format!("this {what} is not the expected one: {start}")
}

/// Puts lines together from pieces.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

// === impl Lines ===

impl Lines {
    /// Takes a piece and hands over each line that it ends.
    fn feed(&mut self, piece: &[u8], mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            if !part.ends_with(b"\n") {
                self.partial.extend_from_slice(part);
            } else if self.partial.is_empty() {
                each(part)?;
            } else {
                self.partial.extend_from_slice(part);
                each(&self.partial)?;
                self.partial.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_at_any_split() {
        let text = b"one\ntwo\n\nthree\n";
        for split in 1..=text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for piece in text.chunks(split) {
                lines
                    .feed(piece, |line| {
                        seen.push(line.to_vec());
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!(
                seen,
                [&b"one\n"[..], b"two\n", b"\n", b"three\n"],
                "pieces of {split}"
            );
        }
    }
}
