//! Whether operator-legacy is still needed.

use crate::evaluation::{Evaluation, Owner};

/// Whether a hosted cluster needs operator-legacy.
///
/// It is kept for clusters that are being migrated, which may be rolled back, and for clusters without an owner, which
/// may turn out to be legacy.
///
/// ```
/// assert!(!ownership::needs_legacy_operator([]), "a new installation needs none");
/// ```
pub fn needs_legacy_operator(evaluations: impl IntoIterator<Item = Evaluation>) -> bool {
    evaluations
        .into_iter()
        .any(|evaluation| match evaluation.owner {
            Owner::Legacy | Owner::Migration | Owner::Undecided => true,
            Owner::New => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_legacy_stays_until_the_last_cluster_is_private() {
        for (owners, expected) in [
            (vec![], false),
            (vec![Owner::New, Owner::New], false),
            (vec![Owner::New, Owner::Legacy], true),
            (vec![Owner::Migration], true),
            (vec![Owner::New, Owner::Undecided], true),
        ] {
            let evaluations = owners.iter().map(|owner| Evaluation {
                owner: *owner,
                annotation: None,
                invalid: None,
            });
            assert_eq!(needs_legacy_operator(evaluations), expected, "{owners:?}");
        }
    }
}
