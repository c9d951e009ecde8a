//! Who owns a hosted cluster: the new operator, the legacy operator, a migration, or no controller until an
//! administrator has fixed the state.
//!
//! Annotations are claims. The API groups that hold the cluster's Cluster API objects are observed. Two operators that
//! reconcile one cluster create machines twice or delete them, so a claim that contradicts what is observed never
//! decides.

use api::annotations::{PRIVATE_CAPI_TYPES, Protocol, SCOPE};
use api::group::CapiTypes;

use crate::invalid::Invalid;
use crate::observed_groups::ObservedGroups;

/// Who may write to a hosted cluster and to what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator that works on private groups.
    New,
    /// The operator that works on standard groups.
    Legacy,
    /// The migration controller, which holds the lock.
    Migration,
    /// None: any controller that wrote could do harm.
    Undecided,
}

/// The annotation that records the owner. It is written before the owner does anything else, so that later passes need
/// not observe API groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnershipAnnotation {
    /// `private-capi-types: "true"`.
    Private,
    /// `scope: legacy`.
    Legacy,
}

/// The owner of one hosted cluster, and what follows from its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Evaluation {
    /// Who may write.
    pub owner: Owner,
    /// The annotation that is missing.
    pub annotation: Option<OwnershipAnnotation>,
    /// What is wrong with the state, for the log and an Event.
    pub invalid: Option<Invalid>,
}

/// What the annotations claim, without the lock.
enum Claim {
    Nothing,
    Private,
    Legacy,
    /// Both at once, which no writer of the protocol produces.
    Contradiction(Invalid),
}

/// Evaluates who owns a hosted cluster.
///
/// ```
/// use api::annotations::Protocol;
/// use ownership::{ObservedGroups, Owner, evaluate};
///
/// let unannotated = Protocol::default();
/// assert_eq!(evaluate(&unannotated, ObservedGroups::None).owner, Owner::New);
/// assert_eq!(evaluate(&unannotated, ObservedGroups::Standard).owner, Owner::Legacy);
/// ```
pub fn evaluate(protocol: &Protocol, observed: ObservedGroups) -> Evaluation {
    let claim = Claim::read(protocol);
    if protocol.in_progress {
        return locked(&claim, observed);
    }
    match claim {
        Claim::Nothing => unannotated(observed),
        Claim::Private => claimed(Owner::New, observed),
        Claim::Legacy => Evaluation {
            // A failure without scope is a roll-back whose second annotation got lost.
            annotation: (!protocol.legacy
                && observed != ObservedGroups::Private
                && observed != ObservedGroups::Both)
                .then_some(OwnershipAnnotation::Legacy),
            ..claimed(Owner::Legacy, observed)
        },
        Claim::Contradiction(invalid) => Evaluation {
            owner: by_observed(observed),
            annotation: None,
            invalid: Some(invalid),
        },
    }
}

/// The types that the annotations alone claim, unless a migration is changing them or they contradict each other. They
/// decide nothing: they are the types that are expected to be observed.
pub fn expected_types(protocol: &Protocol) -> Option<CapiTypes> {
    match Claim::read(protocol) {
        _ if protocol.in_progress => None,
        Claim::Private => Some(CapiTypes::Private),
        Claim::Legacy if protocol.legacy => Some(CapiTypes::Standard),
        Claim::Nothing | Claim::Legacy | Claim::Contradiction(_) => None,
    }
}

// === impl Owner ===

impl Owner {
    /// All owners.
    pub const ALL: [Self; 4] = [Self::New, Self::Legacy, Self::Migration, Self::Undecided];
}

// === impl OwnershipAnnotation ===

impl OwnershipAnnotation {
    /// The key of the annotation, and its value.
    pub fn key_value(self) -> (&'static str, &'static str) {
        match self {
            Self::Private => (PRIVATE_CAPI_TYPES, "true"),
            Self::Legacy => (SCOPE, "legacy"),
        }
    }
}

// === impl Claim ===

impl Claim {
    fn read(protocol: &Protocol) -> Self {
        let Protocol {
            private,
            legacy,
            in_progress: _,
            failed,
        } = protocol;
        match (private, legacy, failed.is_some()) {
            (true, true, _) => Self::Contradiction(Invalid::LegacyAndPrivate),
            (true, false, true) => Self::Contradiction(Invalid::FailedAndPrivate),
            (true, false, false) => Self::Private,
            (false, true, _) | (false, false, true) => Self::Legacy,
            (false, false, false) => Self::Nothing,
        }
    }
}

/// The lock is always honoured: the migration's journal knows more than annotations and observed groups.
fn locked(claim: &Claim, observed: ObservedGroups) -> Evaluation {
    let invalid = match (claim, observed) {
        (Claim::Contradiction(invalid), _) => Some(*invalid),
        (Claim::Nothing, _) => Some(Invalid::LockWithoutScope),
        // Before the commit point the old objects exist; from it on, the new ones do.
        (Claim::Legacy, ObservedGroups::None | ObservedGroups::Private) => {
            Some(Invalid::LockedStandardObjectsGone)
        }
        (Claim::Private, ObservedGroups::None | ObservedGroups::Standard) => {
            Some(Invalid::LockedPrivateObjectsGone)
        }
        (Claim::Legacy, ObservedGroups::Standard | ObservedGroups::Both)
        | (Claim::Private, ObservedGroups::Private | ObservedGroups::Both) => None,
    };
    Evaluation {
        owner: Owner::Migration,
        annotation: None,
        invalid,
    }
}

fn unannotated(observed: ObservedGroups) -> Evaluation {
    let annotation = match observed {
        ObservedGroups::None | ObservedGroups::Private => Some(OwnershipAnnotation::Private),
        ObservedGroups::Standard => Some(OwnershipAnnotation::Legacy),
        ObservedGroups::Both => None,
    };
    Evaluation {
        owner: by_observed(observed),
        annotation,
        invalid: (observed == ObservedGroups::Both).then_some(Invalid::ObjectsInBothGroups),
    }
}

/// A claim without a lock. Without objects nothing contradicts it: the cluster is new, or nearly deleted.
fn claimed(owner: Owner, observed: ObservedGroups) -> Evaluation {
    let supported = observed == ObservedGroups::None || by_observed(observed) == owner;
    let invalid = match observed {
        ObservedGroups::None => None,
        ObservedGroups::Standard => (!supported).then_some(Invalid::PrivateWithStandardObjects),
        ObservedGroups::Private => (!supported).then_some(Invalid::LegacyWithPrivateObjects),
        ObservedGroups::Both => Some(Invalid::ObjectsInBothGroups),
    };
    Evaluation {
        owner: if supported {
            owner
        } else {
            by_observed(observed)
        },
        annotation: None,
        invalid,
    }
}

/// The owner of the observed objects. Without objects the cluster is new, and new clusters are private.
fn by_observed(observed: ObservedGroups) -> Owner {
    match observed {
        ObservedGroups::None | ObservedGroups::Private => Owner::New,
        ObservedGroups::Standard => Owner::Legacy,
        ObservedGroups::Both => Owner::Undecided,
    }
}

#[cfg(test)]
mod tests;
