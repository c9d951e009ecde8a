//! What a client got a response, and when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How many consecutive responses count as the API responding again.
const STEADY: usize = 10;
/// How old the newest of them may be.
const FRESH: Duration = Duration::from_secs(1);

/// What was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// One request.
#[derive(Debug, Clone)]
struct Entry {
    /// When it ended, since the journal was begun.
    at: Duration,
    kind: Kind,
    /// Why there was no response.
    failed: Option<String>,
}

/// All requests, in the order in which they ended.
#[derive(Debug)]
pub(crate) struct Journal {
    start: Instant,
    entries: Mutex<Vec<Entry>>,
}

/// What was seen of one kind of request in a while.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) requests: usize,
    pub(crate) failed: usize,
    /// The longest time without a response.
    pub(crate) gap: Duration,
    /// How often there was none for which reason.
    pub(crate) reasons: BTreeMap<String, usize>,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn begin() -> Self {
        Self {
            start: Instant::now(),
            entries: Mutex::default(),
        }
    }

    /// Now, as it counts.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn add(&self, kind: Kind, failed: Option<String>) {
        let at = self.now();
        self.entries().push(Entry { at, kind, failed });
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries
            .lock()
            .expect("invariant: no thread panics while holding it")
    }

    /// Whether both kinds of requests, begun after a moment, get responses, and keep being so.
    pub(crate) fn is_steady_since(&self, moment: Duration) -> bool {
        let entries = self.entries();
        let now = self.now();
        [Kind::Read, Kind::Write].into_iter().all(|kind| {
            let newest = entries.iter().rev().filter(|entry| entry.kind == kind);
            let responses: Vec<_> = newest
                .take(STEADY)
                .take_while(|entry| entry.failed.is_none() && entry.at > moment)
                .collect();
            let is_fresh = responses
                .first()
                .is_some_and(|one| now.saturating_sub(one.at) < FRESH);
            is_fresh && responses.len() == STEADY
        })
    }

    /// Whether the two newest requests of a kind since a moment got no response.
    pub(crate) fn is_silent_since(&self, kind: Kind, moment: Duration) -> bool {
        let entries = self.entries();
        let mut newest = entries.iter().rev().filter(|entry| entry.kind == kind);
        let mut since = newest.by_ref().take_while(|entry| entry.at > moment);
        let some = since
            .by_ref()
            .take(2)
            .filter(|entry| entry.failed.is_some());
        some.count() == 2
    }

    /// What was seen of a kind between two moments.
    pub(crate) fn seen(&self, kind: Kind, from: Duration, to: Duration) -> Seen {
        let entries = self.entries();
        let mut seen = Seen::default();
        let mut responded = None;
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let counts = entry.at >= from && entry.at <= to;
            seen.requests += usize::from(counts);
            match &entry.failed {
                Some(reason) if counts => {
                    seen.failed += 1;
                    *seen.reasons.entry(reason.clone()).or_default() += 1;
                }
                Some(_) => {}
                None => {
                    if let Some(before) = responded.filter(|_| counts) {
                        seen.gap = seen.gap.max(entry.at.saturating_sub(before));
                    }
                    responded = Some(entry.at);
                }
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(entries: &[(u64, Kind, bool)]) -> Journal {
        let journal = Journal::begin();
        let entries = entries.iter().map(|&(at, kind, responded)| Entry {
            at: Duration::from_secs(at),
            kind,
            failed: (!responded).then(|| "timed out".to_owned()),
        });
        journal.entries().extend(entries);
        journal
    }

    #[test]
    fn the_longest_gap_is_between_responses_and_may_start_earlier() {
        use Kind::{Read, Write};
        let journal = journal(&[
            (1, Read, true),
            (2, Write, true),
            (3, Read, false),
            (5, Read, false),
            (7, Read, true),
            (8, Read, true),
            (20, Read, true),
        ]);
        let seconds = Duration::from_secs;
        let seen = journal.seen(Read, seconds(3), seconds(10));
        assert_eq!((seen.requests, seen.failed, seen.gap), (4, 2, seconds(6)));
        assert_eq!(seen.reasons["timed out"], 2);
        assert_eq!(
            journal.seen(Write, seconds(3), seconds(10)),
            Seen::default()
        );
    }

    #[test]
    fn the_api_is_available_after_responses_of_both_kinds() {
        let journal = Journal::begin();
        let moment = journal.now();
        for _ in 0..STEADY {
            assert!(!journal.is_steady_since(moment));
            journal.add(Kind::Read, None);
            journal.add(Kind::Write, None);
        }
        assert!(journal.is_steady_since(moment));
        journal.add(Kind::Write, Some("timed out".to_owned()));
        assert!(!journal.is_steady_since(moment));
        assert!(!journal.is_silent_since(Kind::Write, moment));
        journal.add(Kind::Write, Some("timed out".to_owned()));
        assert!(journal.is_silent_since(Kind::Write, moment));
        assert!(!journal.is_silent_since(Kind::Read, moment));
    }
}
