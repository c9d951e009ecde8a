//! How many requests a migration has sent.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of requests.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    writes: AtomicU64,
    tries: AtomicU64,
    reads: AtomicU64,
}

/// How many requests an executor has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes of objects that succeeded.
    pub writes: u64,
    /// Writes of objects that were sent, retries included.
    pub tries: u64,
    /// Objects read one by one.
    pub reads: u64,
}

// === impl Tally ===

impl Tally {
    pub(crate) fn tried(&self) {
        self.tries.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn written(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers so far.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            writes: self.writes.load(Ordering::Relaxed),
            tries: self.tries.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        }
    }
}
