//! What one operator does about one hosted cluster.

use api::annotations::Protocol;
use api::group::CapiTypes;
use clap::ValueEnum;

use crate::evaluation::{Evaluation, Owner, OwnershipAnnotation, evaluate};
use crate::observed_groups::ObservedGroups;

/// Which hosted clusters an operator reconciles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub enum Scope {
    /// Those on private types. Also annotates unannotated clusters as private or legacy.
    Private,
    /// Those annotated as legacy. Annotates none, deletes nothing.
    Legacy,
    /// All: for an installation with one operator. Annotates none.
    All,
}

/// What the operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: the cluster belongs to another operator, or to a migration.
    Skip,
    /// Write the missing ownership annotation. The next pass decides again.
    Annotate(OwnershipAnnotation),
    /// Report that the state is invalid, and write nothing else.
    ReportInvalid,
    /// Reconcile the cluster.
    Reconcile,
}

// === impl Scope ===

impl Scope {
    /// The types of which an operator of this scope writes objects.
    pub fn capi_types(self) -> &'static [CapiTypes] {
        match self {
            Self::Private => &[CapiTypes::Private],
            Self::Legacy => &[CapiTypes::Standard],
            Self::All => &[CapiTypes::Private, CapiTypes::Standard],
        }
    }
}

/// Decides what an operator of this scope does about a cluster with this evaluation.
///
/// At most one of `operator` and `operator-legacy` does anything: only the first writes annotations, and the second
/// reconciles only what is annotated.
pub fn decide(scope: Scope, evaluation: &Evaluation) -> Decision {
    let Evaluation {
        owner,
        annotation,
        invalid,
    } = *evaluation;
    match (scope, owner) {
        (Scope::Private, Owner::New) => annotation.map_or(Decision::Reconcile, Decision::Annotate),
        (Scope::Private, Owner::Legacy) => annotation.map_or(Decision::Skip, Decision::Annotate),
        (Scope::Legacy, Owner::Legacy) if annotation.is_none() => Decision::Reconcile,
        (Scope::Legacy, _) => Decision::Skip,
        (Scope::All, Owner::New | Owner::Legacy) => Decision::Reconcile,
        (Scope::Private | Scope::All, Owner::Undecided) => Decision::ReportInvalid,
        (Scope::Private | Scope::All, Owner::Migration) => match invalid {
            Some(_) => Decision::ReportInvalid,
            None => Decision::Skip,
        },
    }
}

/// Whether an operator of this scope may reconcile a cluster with these annotations, whatever groups are observed. If
/// not, nothing need be observed.
pub fn may_reconcile(scope: Scope, protocol: &Protocol) -> bool {
    ObservedGroups::ALL
        .into_iter()
        .any(|observed| decide(scope, &evaluate(protocol, observed)) == Decision::Reconcile)
}
