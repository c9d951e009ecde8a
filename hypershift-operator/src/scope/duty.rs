//! What one operator does about one hosted cluster: pure.

use api::group::Side;
use clap::ValueEnum;

use super::{Mark, Owner, Verdict};

/// Which hosted clusters an operator acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Scope {
    /// Those on private types. Also tells new ones from legacy ones and marks both.
    Private,
    /// Those marked legacy. Marks none, deletes nothing.
    Legacy,
    /// All: for an installation with one operator. Marks none.
    All,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Nothing: the cluster is somebody else's.
    Leave,
    /// Write the mark that is due. What follows from it is decided when it is there.
    Mark(Mark),
    /// Tell that the state is invalid, and touch nothing else.
    Report,
    /// Reconcile it.
    Own,
}

// === impl Scope ===

impl Scope {
    /// The sides on which an operator of this scope writes objects of Cluster API.
    pub fn sides(self) -> &'static [Side] {
        match self {
            Self::Private => &[Side::Private],
            Self::Legacy => &[Side::Standard],
            Self::All => &[Side::Private, Side::Standard],
        }
    }
}

/// What an operator of this scope does about a cluster with this verdict.
///
/// At most one of `operator` and `operator-legacy` has anything to do; marks are written by the first alone, and the
/// second acts on what is marked.
pub fn duty(scope: Scope, verdict: &Verdict) -> Duty {
    let Verdict {
        owner,
        mark,
        invalid,
    } = *verdict;
    match (scope, owner) {
        (Scope::Private, Owner::New) => mark.map_or(Duty::Own, Duty::Mark),
        (Scope::Private, Owner::Legacy) => mark.map_or(Duty::Leave, Duty::Mark),
        (Scope::Legacy, Owner::Legacy) if mark.is_none() => Duty::Own,
        (Scope::Legacy, _) => Duty::Leave,
        (Scope::All, Owner::New | Owner::Legacy) => Duty::Own,
        (Scope::Private | Scope::All, Owner::Nobody) => Duty::Report,
        (Scope::Private | Scope::All, Owner::Migration) => match invalid {
            Some(_) => Duty::Report,
            None => Duty::Leave,
        },
    }
}
