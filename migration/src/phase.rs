//! The phases of a migration, in order.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A phase of a migration. The order of the variants is the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Preflight, inventory and health snapshot; writes nothing.
    Plan,
    /// Annotates the hosted cluster as locked and creates the journal.
    Lock,
    /// Pauses the Cluster.
    Pause,
    /// Scales every controller of the cluster to zero and proves that no pod is left.
    Quiesce,
    /// Creates the private target of each object.
    Copy,
    /// Compares targets with originals.
    VerifyCopy,
    /// Adds the targets as owners, beside the originals, to every dependent.
    Reparent,
    /// Rewrites the deployments with the proxy sidecar and scales them up.
    Deploy,
    /// Lifts the pause and waits until the cluster is no worse than its snapshot.
    Health,
    /// The one write that makes the hosted cluster private.
    Commit,
    /// Deletes the originals, without running their finalizers.
    Retire,
    /// Checks ownership, removes the lock and archives the journal.
    Finish,
}

/// What undoes a phase. Each is idempotent, and harmless when its phase did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inverse {
    /// Removes the lock.
    Unlock,
    /// Gives the Cluster the pause that it had before.
    RestorePause,
    /// Gives the controllers the replicas that they had before.
    ScaleBack,
    /// Deletes the targets, finalizers first, orphaning what they own.
    DeleteTargets,
    /// Drops the added owners and gives `controller` back to the originals.
    DropAddedOwners,
    /// Restores the deployments' old templates, at zero replicas.
    RestoreTemplates,
    /// Pauses the targets and scales the controllers to zero again.
    PauseAndQuiesce,
}

/// A rollback that is too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "phase {phase} cannot be rolled back, because the commit point is behind it: complete the migration"
)]
pub struct PastCommit {
    /// The phase that failed.
    pub phase: Phase,
}

/// A name that is none of the phases'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is not a phase of a migration: the journal was written by another version, or by hand"
)]
pub struct UnknownPhase {
    /// The name as read.
    pub name: String,
}

// === impl Phase ===

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 12] = [
        Self::Plan,
        Self::Lock,
        Self::Pause,
        Self::Quiesce,
        Self::Copy,
        Self::VerifyCopy,
        Self::Reparent,
        Self::Deploy,
        Self::Health,
        Self::Commit,
        Self::Retire,
        Self::Finish,
    ];

    /// The name in the journal and in the reason of the hosted cluster's condition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Lock => "Lock",
            Self::Pause => "Pause",
            Self::Quiesce => "Quiesce",
            Self::Copy => "Copy",
            Self::VerifyCopy => "VerifyCopy",
            Self::Reparent => "Reparent",
            Self::Deploy => "Deploy",
            Self::Health => "Health",
            Self::Commit => "Commit",
            Self::Retire => "Retire",
            Self::Finish => "Finish",
        }
    }

    /// The phase after this one.
    pub fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| *phase > self)
    }

    /// Whether a failure in this phase causes a rollback.
    ///
    /// The commit itself is one write, made or not made. A driver that does not know which observes first: made means
    /// [`Phase::Retire`], not made means that the write is tried again or rolled back from [`Phase::Health`].
    pub fn is_reversible(self) -> bool {
        self < Self::Commit
    }

    /// What undoes this phase: none for those that write nothing, and for those from the commit point on.
    pub fn inverse(self) -> Option<Inverse> {
        match self {
            Self::Plan | Self::VerifyCopy | Self::Commit | Self::Retire | Self::Finish => None,
            Self::Lock => Some(Inverse::Unlock),
            Self::Pause => Some(Inverse::RestorePause),
            Self::Quiesce => Some(Inverse::ScaleBack),
            Self::Copy => Some(Inverse::DeleteTargets),
            Self::Reparent => Some(Inverse::DropAddedOwners),
            Self::Deploy => Some(Inverse::RestoreTemplates),
            Self::Health => Some(Inverse::PauseAndQuiesce),
        }
    }

    /// How long the phase may wait for the cluster before it counts as failed; none where it waits for nothing.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::Quiesce | Self::Health => Some(Duration::from_mins(5)),
            Self::Deploy => Some(Duration::from_mins(10)),
            Self::Plan
            | Self::Lock
            | Self::Pause
            | Self::Copy
            | Self::VerifyCopy
            | Self::Reparent
            | Self::Commit
            | Self::Retire
            | Self::Finish => None,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|phase| phase.name() == name)
            .ok_or_else(|| UnknownPhase {
                name: name.to_owned(),
            })
    }
}

/// By its name.
impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(D::Error::custom)
    }
}

/// What undoes a migration that failed in `phase`, in the order in which to do it: last phase first.
///
/// The failed phase is undone, too, since it may have done half of its work.
///
/// ```
/// use migration::phase::{Inverse, Phase, roll_back};
///
/// let steps = roll_back(Phase::Quiesce)?;
/// assert_eq!(steps, [Inverse::ScaleBack, Inverse::RestorePause, Inverse::Unlock]);
/// # Ok::<(), migration::phase::PastCommit>(())
/// ```
pub fn roll_back(phase: Phase) -> Result<Vec<Inverse>, PastCommit> {
    if !phase.is_reversible() {
        return Err(PastCommit { phase });
    }
    let done = Phase::ALL.into_iter().filter(|earlier| *earlier <= phase);
    Ok(done.rev().filter_map(Phase::inverse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row {
        phase: Phase,
        next: Option<Phase>,
        inverse: Option<Inverse>,
        reversible: bool,
        minutes: Option<u64>,
    }

    #[test]
    fn phases_run_in_order_and_are_undone_up_to_the_commit() {
        use Phase::*;
        let row = |phase, next, inverse, reversible, minutes| Row {
            phase,
            next,
            inverse,
            reversible,
            minutes,
        };
        let table = [
            row(Plan, Some(Lock), None, true, None),
            row(Lock, Some(Pause), Some(Inverse::Unlock), true, None),
            row(
                Pause,
                Some(Quiesce),
                Some(Inverse::RestorePause),
                true,
                None,
            ),
            row(Quiesce, Some(Copy), Some(Inverse::ScaleBack), true, Some(5)),
            row(
                Copy,
                Some(VerifyCopy),
                Some(Inverse::DeleteTargets),
                true,
                None,
            ),
            row(VerifyCopy, Some(Reparent), None, true, None),
            row(
                Reparent,
                Some(Deploy),
                Some(Inverse::DropAddedOwners),
                true,
                None,
            ),
            row(
                Deploy,
                Some(Health),
                Some(Inverse::RestoreTemplates),
                true,
                Some(10),
            ),
            row(
                Health,
                Some(Commit),
                Some(Inverse::PauseAndQuiesce),
                true,
                Some(5),
            ),
            row(Commit, Some(Retire), None, false, None),
            row(Retire, Some(Finish), None, false, None),
            row(Finish, None, None, false, None),
        ];
        assert_eq!(table.len(), Phase::ALL.len());
        for (row, phase) in table.iter().zip(Phase::ALL) {
            assert_eq!(row.phase, phase);
            assert_eq!(phase.next(), row.next, "{phase}");
            assert_eq!(phase.inverse(), row.inverse, "{phase}");
            assert_eq!(phase.is_reversible(), row.reversible, "{phase}");
            assert_eq!(
                phase.limit(),
                row.minutes.map(Duration::from_mins),
                "{phase}"
            );
        }
    }

    #[test]
    fn names_read_back() {
        for phase in Phase::ALL {
            assert_eq!(phase.name().parse(), Ok(phase));
        }
        for name in ["", "plan", "COMMIT", "Plan "] {
            assert!(name.parse::<Phase>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn roll_back_undoes_last_things_first() {
        use Inverse::*;
        let whole = [
            PauseAndQuiesce,
            RestoreTemplates,
            DropAddedOwners,
            DeleteTargets,
            ScaleBack,
            RestorePause,
            Unlock,
        ];
        let table: [(Phase, &[Inverse]); 5] = [
            (Phase::Plan, &[]),
            (Phase::Lock, &[Unlock]),
            (Phase::VerifyCopy, &whole[3..]),
            (Phase::Deploy, &whole[1..]),
            (Phase::Health, &whole),
        ];
        for (phase, steps) in table {
            assert_eq!(roll_back(phase).as_deref(), Ok(steps), "{phase}");
        }
    }

    #[test]
    fn every_later_failure_undoes_all_that_an_earlier_one_does() {
        let reversible = Phase::ALL.into_iter().filter(|phase| phase.is_reversible());
        let steps: Vec<_> = reversible.map(|phase| roll_back(phase).unwrap()).collect();
        for pair in steps.windows(2) {
            assert!(pair[1].ends_with(&pair[0]), "{pair:?}");
        }
    }

    /// Check M12.
    #[test]
    fn nothing_is_rolled_back_after_the_commit_point() {
        for phase in [Phase::Commit, Phase::Retire, Phase::Finish] {
            assert_eq!(roll_back(phase), Err(PastCommit { phase }));
        }
    }
}
