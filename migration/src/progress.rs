//! How far a migration is, in counts that people can follow.

use crate::groups::Groups;
use crate::journal::{Course, Journal};
use crate::phase::Phase;
use crate::snapshot::Snapshot;

/// How far a phase is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The phase that is being done or undone.
    pub phase: Phase,
    /// How many objects are through.
    pub done: usize,
    /// How many there are. Zero in phases that do not count objects.
    pub total: usize,
    /// For people, for instance `copied 340 of 512 objects`.
    pub message: String,
}

impl Progress {
    /// How far a migration is.
    pub fn of(_groups: &Groups, journal: &Journal, _snapshot: &Snapshot) -> Self {
        let undone = matches!(journal.course, Course::Back(_));
        Self {
            phase: journal.phase,
            done: 0,
            total: 0,
            message: if undone {
                "undoing".to_owned()
            } else {
                journal.phase.to_string()
            },
        }
    }
}
