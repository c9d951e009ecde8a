//! The state of a hosted cluster's migration to private types.

use api::annotations::Protocol;

use crate::evaluation::{Owner, OwnershipAnnotation, evaluate};
use crate::observed_groups::ObservedGroups;

/// A hosted cluster is in exactly one of these states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MigrationState {
    /// On private types.
    Done,
    /// On standard types, or not decided yet.
    Pending,
    /// Locked by a migration.
    Active,
    /// On standard types, after a migration that failed.
    Failed,
}

// === impl MigrationState ===

impl MigrationState {
    /// The state of a cluster with this owner.
    pub fn of(protocol: &Protocol, owner: Owner) -> Self {
        match owner {
            Owner::New => Self::Done,
            Owner::Migration => Self::Active,
            Owner::Undecided => Self::Pending,
            Owner::Legacy if protocol.failed.is_some() => Self::Failed,
            Owner::Legacy => Self::Pending,
        }
    }

    /// The state by annotations alone, for callers that do not observe API groups. A cluster without ownership
    /// annotations is pending: the operator has not evaluated it yet.
    ///
    /// ```
    /// use api::annotations::Protocol;
    /// use ownership::MigrationState;
    ///
    /// assert_eq!(MigrationState::by_annotations(&Protocol::default()), MigrationState::Pending);
    /// ```
    pub fn by_annotations(protocol: &Protocol) -> Self {
        let evaluation = evaluate(protocol, ObservedGroups::None);
        match evaluation.annotation {
            Some(OwnershipAnnotation::Private) => Self::Pending,
            Some(OwnershipAnnotation::Legacy) | None => Self::of(protocol, evaluation.owner),
        }
    }

    /// The name for output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_alone_give_a_state() {
        use MigrationState::{Active, Done, Failed, Pending};
        for (private, legacy, in_progress, failed, expected) in [
            (false, false, false, false, Pending),
            (false, true, false, false, Pending),
            (false, true, true, false, Active),
            (false, true, false, true, Failed),
            (false, false, false, true, Failed),
            (true, false, false, false, Done),
            (true, false, true, false, Active),
            (true, true, false, false, Done),
            (true, false, false, true, Done),
            (false, false, true, false, Active),
        ] {
            let protocol = Protocol {
                private,
                legacy,
                in_progress,
                failed: failed.then(|| "conflict".to_owned()),
            };
            let state = MigrationState::by_annotations(&protocol);
            assert_eq!(state, expected, "{protocol:?}");
        }
    }
}
