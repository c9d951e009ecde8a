//! What a migration remembers between two steps: the only state that a crash must not take with it.
//!
//! Everything that can be read from objects is left out: which are copied, which owners are added, which are gone. So an
//! entry that is missing because the process died costs a second look and nothing else.

mod fingerprints;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Reason;
use crate::groups::Direction;
use crate::object::ObjectKey;
use crate::phase::{PastCommit, Phase};
use crate::target::Current;

pub use fingerprints::{Fingerprint, Fingerprints};

/// The form of the journal that this program writes, and the only one that it reads.
const VERSION: u32 = 1;

/// A migration's memory. Kept as JSON in a ConfigMap beside the objects, written with a precondition on its version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Journal {
    version: u32,
    /// Which migration: a name that is never used twice, for instance a UUID.
    pub id: String,
    /// Which way.
    pub direction: Direction,
    /// The fencing number of the process that wrote it last. A process with a smaller one has been replaced.
    pub fence: u64,
    /// The phase that is under way: forward, the one being done; backward, the one being undone.
    pub phase: Phase,
    /// Whether it is being migrated, not rolled back.
    pub course: Course,
    /// When the phase was entered, in seconds since 1970.
    pub phase_started: i64,
    /// When the migration was, in seconds since 1970.
    pub started: i64,
    /// How the Clusters were paused before.
    pub pauses: BTreeMap<String, Pause>,
    /// What each original was when it was copied.
    pub originals: Option<Fingerprints>,
    /// Whether the site has found the cluster healthy: what is left is a last look at the originals, and the commit.
    pub healthy: bool,
    /// The highest phase that was entered: what a roll-back has to expect.
    pub furthest: Phase,
    /// The site's: replica counts, from before it scales anything down.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub counts: Value,
    /// The site's: how the cluster was before.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub health: Value,
}

/// Which way a migration is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Course {
    /// Phase after phase.
    Forward,
    /// Being undone, last phase first.
    Back(Failure),
}

/// Why a migration is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Failure {
    /// The class.
    pub reason: Reason,
    /// What failed, with the object's name and the way out.
    pub message: String,
}

/// The value that `spec.paused` of a Cluster had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pause {
    /// None at all.
    Absent,
    /// `false`.
    Running,
    /// `true`: it was paused before, and stays so.
    Paused,
}

/// A journal that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not what this program writes.
    #[error(
        "the journal is damaged: restore it from a backup, or look at the objects before you delete it"
    )]
    Damaged(#[source] serde_json::Error),
    /// Another version of this program wrote it.
    #[error(
        "the journal has version {0}, and this program reads version {VERSION}: let the program finish that began"
    )]
    Version(u32),
}

// === impl Journal ===

impl Journal {
    /// The journal of a migration that is about to take its lock.
    pub fn begin(id: impl Into<String>, direction: Direction, fence: u64, now: i64) -> Self {
        Self {
            version: VERSION,
            id: id.into(),
            direction,
            fence,
            phase: Phase::Lock,
            course: Course::Forward,
            phase_started: now,
            started: now,
            pauses: BTreeMap::new(),
            originals: None,
            healthy: false,
            furthest: Phase::Lock,
            counts: Value::Null,
            health: Value::Null,
        }
    }

    /// Reads what [`Journal::to_json`] wrote.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } = serde_json::from_str(text).map_err(Unreadable::Damaged)?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        serde_json::from_str(text).map_err(Unreadable::Damaged)
    }

    /// As it is kept.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("invariant: a journal holds strings and numbers only")
    }

    /// The migration that undoes everything from the phase that is under way. A second failure changes nothing: the
    /// first is the one to report.
    pub fn fail(&self, failure: Failure, now: i64) -> Result<Self, PastCommit> {
        if matches!(self.course, Course::Back(_)) {
            return Ok(self.clone());
        }
        if !self.phase.is_reversible() {
            return Err(PastCommit { phase: self.phase });
        }
        Ok(Self {
            course: Course::Back(failure),
            phase_started: now,
            ..self.clone()
        })
    }

    /// The migration back before its commit: for callers with proof that the one write was not made.
    #[must_use]
    pub fn without_commit(&self) -> Self {
        match self.phase {
            Phase::Commit => Self {
                phase: Phase::Health,
                healthy: false,
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// Whether [`crate::machine::next`] looks at objects in this phase, so that they have to be read first.
    pub fn reads_objects(&self) -> bool {
        match self.phase {
            Phase::Plan | Phase::Lock | Phase::Quiesce | Phase::Deploy => false,
            Phase::Pause
            | Phase::Copy
            | Phase::VerifyCopy
            | Phase::Reparent
            | Phase::Health
            | Phase::Commit
            | Phase::Retire
            | Phase::Finish => true,
        }
    }

    pub(crate) fn found_healthy(&self) -> Self {
        Self {
            healthy: true,
            ..self.clone()
        }
    }

    /// Which generations of a Cluster count as its current one: if the pause is the migration's, the one before, too.
    pub(crate) fn current(&self, key: &ObjectKey) -> Current {
        match self.pauses.get(&key.to_string()) {
            Some(Pause::Absent | Pause::Running) => Current::BeforePause,
            Some(Pause::Paused) | None => Current::Exact,
        }
    }

    pub(crate) fn enter(&self, phase: Phase, now: i64) -> Self {
        Self {
            phase,
            phase_started: now,
            furthest: match self.course {
                Course::Forward => self.furthest.max(phase),
                Course::Back(_) => self.furthest,
            },
            ..self.clone()
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure with its reason and a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_journal_round_trips() {
        let mut journal = Journal::begin("one", Direction::Reverse, 7, 11);
        journal.pauses.insert("Cluster x".into(), Pause::Absent);
        journal.originals = Some(Fingerprints::default());
        let text = journal.to_json();
        assert_eq!(Journal::parse(&text).unwrap(), journal);
        for (damaged, expected) in [
            ("", "the journal is damaged"),
            ("{}", "the journal is damaged"),
            (&text[..text.len() - 1], "the journal is damaged"),
            (r#"{"version":2}"#, "the journal has version 2"),
            (r#"{"version":1}"#, "the journal is damaged"),
        ] {
            let error = Journal::parse(damaged).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{damaged}: {error}");
        }
    }

    /// Check M12.
    #[test]
    fn no_failure_after_the_commit_point_causes_a_rollback() {
        let failure = |message: &str| Failure::new(Reason::Conflict, message);
        for phase in Phase::ALL {
            let journal = Journal {
                phase,
                ..Journal::begin("one", Direction::Forward, 1, 0)
            };
            let failed = journal.fail(failure("first"), 5);
            assert_eq!(failed.is_ok(), phase < Phase::Commit, "{phase}");
            if let Ok(back) = failed {
                assert_eq!(back.fail(failure("second"), 6).unwrap(), back);
                assert_eq!(back.course, Course::Back(failure("first")));
            }
        }
    }
}
