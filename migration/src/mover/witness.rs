//! Whoever looks on while a migration is carried out, and may end it at any instant: how tests kill it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::machine::Write;
use crate::phase::Phase;

/// What is about to be done, or has just been done.
#[derive(Debug, Clone, Copy)]
pub enum Deed<'a> {
    /// A write of an object.
    Write(&'a Write),
    /// A write of the journal, which then says this phase.
    Record(Phase),
}

/// When a [`Deed`] is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of it has been sent.
    Before,
    /// The API server has done it, and the migration knows nothing of that yet.
    After,
}

/// Whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    GoOn,
    /// It ends here, as if the process had been killed: nothing more is read or written.
    Die,
}

/// Looks on.
pub trait Witness: fmt::Debug + Send + Sync {
    /// Called before and after every write.
    fn sees(&self, deed: Deed<'_>, moment: Moment) -> Verdict;
}

/// Nobody looks on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Witness for Nobody {
    fn sees(&self, _: Deed<'_>, _: Moment) -> Verdict {
        Verdict::GoOn
    }
}

/// How much was asked of the API server.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    writes: AtomicU64,
    tries: AtomicU64,
    reads: AtomicU64,
}

/// What a mover has done up to one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Writes of objects that were answered with success.
    pub writes: u64,
    /// Writes of objects that were sent, tried again ones included.
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
