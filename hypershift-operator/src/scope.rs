//! Who owns a hosted cluster: the new operator, the legacy one, the migration, or nobody until a person has looked.
//!
//! Annotations are claims; the API groups that hold the cluster's Cluster API objects are evidence. Two operators that
//! act on one cluster create machines twice or delete them, so a claim that the evidence contradicts never decides.

mod duty;
mod invalid;
mod side;

use api::annotations::{PRIVATE_CAPI_TYPES, Protocol, SCOPE};
use api::group::Side;
pub use duty::{Duty, Scope, duty};
pub use invalid::Invalid;
pub use side::side;

/// Which API groups hold the Cluster API objects of a hosted cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Neither: it has none yet.
    #[default]
    None,
    /// The standard groups only.
    Standard,
    /// The private groups only.
    Private,
    /// Both, as in the middle of a migration.
    Both,
}

/// Who may write to a hosted cluster and to what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The operator that works on private groups.
    New,
    /// The operator that works on standard groups.
    Legacy,
    /// The migration controller, which holds the lock.
    Migration,
    /// Nobody: whoever wrote could do harm.
    Nobody,
}

/// An annotation that is due before the owner does anything else, so that the next reader need not look at evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// `private-capi-types: "true"`.
    Private,
    /// `scope: legacy`.
    Legacy,
}

/// What is decided about one hosted cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Verdict {
    /// Who may write.
    pub owner: Owner,
    /// What the owner writes first.
    pub mark: Option<Mark>,
    /// What is wrong with the state, to be logged and told in an Event.
    pub invalid: Option<Invalid>,
}

/// What the annotations say, without the lock.
enum Claim {
    Nothing,
    Private,
    Legacy,
    /// Both at once, which no writer of the protocol produces.
    Contradiction(Invalid),
}

/// Decides who owns a hosted cluster.
///
/// ```
/// use api::annotations::Protocol;
/// use hypershift_operator::scope::{Evidence, Owner, verdict};
///
/// let unmarked = Protocol::default();
/// assert_eq!(verdict(&unmarked, Evidence::None).owner, Owner::New);
/// assert_eq!(verdict(&unmarked, Evidence::Standard).owner, Owner::Legacy);
/// ```
pub fn verdict(protocol: &Protocol, evidence: Evidence) -> Verdict {
    let claim = Claim::read(protocol);
    if protocol.in_progress {
        return locked(&claim, evidence);
    }
    match claim {
        Claim::Nothing => unmarked(evidence),
        Claim::Private => claimed(Owner::New, evidence),
        Claim::Legacy => Verdict {
            // A failure without scope is a roll-back whose second annotation got lost.
            mark: (!protocol.legacy && evidence != Evidence::Private && evidence != Evidence::Both)
                .then_some(Mark::Legacy),
            ..claimed(Owner::Legacy, evidence)
        },
        Claim::Contradiction(invalid) => Verdict {
            owner: by_evidence(evidence),
            mark: None,
            invalid: Some(invalid),
        },
    }
}

/// The side that the annotations alone say, when nobody works on changing it and they do not contradict each other. It
/// decides nothing: it is what evidence may be expected to be.
pub(crate) fn expected(protocol: &Protocol) -> Option<Side> {
    match Claim::read(protocol) {
        _ if protocol.in_progress => None,
        Claim::Private => Some(Side::Private),
        Claim::Legacy if protocol.legacy => Some(Side::Standard),
        Claim::Nothing | Claim::Legacy | Claim::Contradiction(_) => None,
    }
}

/// Whether an operator of this scope owns a cluster with these annotations on any evidence: if not, nobody need look.
pub(crate) fn may_own(scope: Scope, protocol: &Protocol) -> bool {
    let owns = |evidence| duty(scope, &verdict(protocol, evidence)) == Duty::Own;
    Evidence::ALL.into_iter().any(owns)
}

// === impl Evidence ===

impl Evidence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Standard, Self::Private, Self::Both];

    /// This, and objects in the groups of one more side.
    #[must_use]
    pub fn with(self, side: Side) -> Self {
        match (self, side) {
            (Self::None | Self::Standard, Side::Standard) => Self::Standard,
            (Self::None | Self::Private, Side::Private) => Self::Private,
            (Self::Private | Self::Both, Side::Standard)
            | (Self::Standard | Self::Both, Side::Private) => Self::Both,
        }
    }

    /// The sides whose groups hold objects.
    pub fn sides(self) -> &'static [Side] {
        match self {
            Self::None => &[],
            Self::Standard => &[Side::Standard],
            Self::Private => &[Side::Private],
            Self::Both => &[Side::Private, Side::Standard],
        }
    }
}

// === impl Owner ===

impl Owner {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::New, Self::Legacy, Self::Migration, Self::Nobody];

    /// The name for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Legacy => "legacy",
            Self::Migration => "migration",
            Self::Nobody => "nobody",
        }
    }
}

// === impl Mark ===

impl Mark {
    /// The annotation, and its value.
    pub fn annotation(self) -> (&'static str, &'static str) {
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

/// The lock is honoured whatever else is wrong: the migration's journal knows more than annotations and evidence.
fn locked(claim: &Claim, evidence: Evidence) -> Verdict {
    let invalid = match (claim, evidence) {
        (Claim::Contradiction(invalid), _) => Some(*invalid),
        (Claim::Nothing, _) => Some(Invalid::LockWithoutScope),
        // Before the commit point the old objects exist; from it on, the new ones do.
        (Claim::Legacy, Evidence::None | Evidence::Private) => {
            Some(Invalid::LockedStandardObjectsGone)
        }
        (Claim::Private, Evidence::None | Evidence::Standard) => {
            Some(Invalid::LockedPrivateObjectsGone)
        }
        (Claim::Legacy, Evidence::Standard | Evidence::Both)
        | (Claim::Private, Evidence::Private | Evidence::Both) => None,
    };
    Verdict {
        owner: Owner::Migration,
        mark: None,
        invalid,
    }
}

fn unmarked(evidence: Evidence) -> Verdict {
    let mark = match evidence {
        Evidence::None | Evidence::Private => Some(Mark::Private),
        Evidence::Standard => Some(Mark::Legacy),
        Evidence::Both => None,
    };
    Verdict {
        owner: by_evidence(evidence),
        mark,
        invalid: (evidence == Evidence::Both).then_some(Invalid::ObjectsInBothGroups),
    }
}

/// A claim without a lock. No objects contradict nothing: the cluster is new, or nearly deleted.
fn claimed(owner: Owner, evidence: Evidence) -> Verdict {
    let supported = evidence == Evidence::None || by_evidence(evidence) == owner;
    let invalid = match evidence {
        Evidence::None => None,
        Evidence::Standard => (!supported).then_some(Invalid::PrivateWithStandardObjects),
        Evidence::Private => (!supported).then_some(Invalid::LegacyWithPrivateObjects),
        Evidence::Both => Some(Invalid::ObjectsInBothGroups),
    };
    Verdict {
        owner: if supported {
            owner
        } else {
            by_evidence(evidence)
        },
        mark: None,
        invalid,
    }
}

/// Whose objects there are. Without any, the cluster is new, and new ones are private.
fn by_evidence(evidence: Evidence) -> Owner {
    match evidence {
        Evidence::None | Evidence::Private => Owner::New,
        Evidence::Standard => Owner::Legacy,
        Evidence::Both => Owner::Nobody,
    }
}

#[cfg(test)]
mod tests;
