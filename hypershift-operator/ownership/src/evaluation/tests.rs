//! All combinations of annotations and observed groups, and what each operator does about them.

use super::*;
use crate::decision::{Decision, Scope, decide, may_reconcile};

/// Annotations as letters (`p`rivate, `l`egacy, `i`n progress, `f`ailed), then the evaluation for each of
/// [`ObservedGroups::ALL`]: the owner, `+` if the annotation of that owner is missing, and the reason if the state is
/// invalid.
const TABLE: [(&str, [&str; 4]); 16] = [
    (
        "",
        ["New+", "Legacy+", "New+", "Undecided ObjectsInBothGroups"],
    ),
    (
        "p",
        [
            "New",
            "Legacy PrivateWithStandardObjects",
            "New",
            "Undecided ObjectsInBothGroups",
        ],
    ),
    (
        "l",
        [
            "Legacy",
            "Legacy",
            "New LegacyWithPrivateObjects",
            "Undecided ObjectsInBothGroups",
        ],
    ),
    (
        "f",
        [
            "Legacy+",
            "Legacy+",
            "New LegacyWithPrivateObjects",
            "Undecided ObjectsInBothGroups",
        ],
    ),
    (
        "lf",
        [
            "Legacy",
            "Legacy",
            "New LegacyWithPrivateObjects",
            "Undecided ObjectsInBothGroups",
        ],
    ),
    (
        "pl",
        [
            "New LegacyAndPrivate",
            "Legacy LegacyAndPrivate",
            "New LegacyAndPrivate",
            "Undecided LegacyAndPrivate",
        ],
    ),
    (
        "pf",
        [
            "New FailedAndPrivate",
            "Legacy FailedAndPrivate",
            "New FailedAndPrivate",
            "Undecided FailedAndPrivate",
        ],
    ),
    (
        "plf",
        [
            "New LegacyAndPrivate",
            "Legacy LegacyAndPrivate",
            "New LegacyAndPrivate",
            "Undecided LegacyAndPrivate",
        ],
    ),
    (
        "i",
        [
            "Migration LockWithoutScope",
            "Migration LockWithoutScope",
            "Migration LockWithoutScope",
            "Migration LockWithoutScope",
        ],
    ),
    (
        "pi",
        [
            "Migration LockedPrivateObjectsGone",
            "Migration LockedPrivateObjectsGone",
            "Migration",
            "Migration",
        ],
    ),
    (
        "li",
        [
            "Migration LockedStandardObjectsGone",
            "Migration",
            "Migration LockedStandardObjectsGone",
            "Migration",
        ],
    ),
    (
        "if",
        [
            "Migration LockedStandardObjectsGone",
            "Migration",
            "Migration LockedStandardObjectsGone",
            "Migration",
        ],
    ),
    (
        "lif",
        [
            "Migration LockedStandardObjectsGone",
            "Migration",
            "Migration LockedStandardObjectsGone",
            "Migration",
        ],
    ),
    (
        "pli",
        [
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
        ],
    ),
    (
        "pif",
        [
            "Migration FailedAndPrivate",
            "Migration FailedAndPrivate",
            "Migration FailedAndPrivate",
            "Migration FailedAndPrivate",
        ],
    ),
    (
        "plif",
        [
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
            "Migration LegacyAndPrivate",
        ],
    ),
];

fn protocol(letters: &str) -> Protocol {
    Protocol {
        private: letters.contains('p'),
        legacy: letters.contains('l'),
        in_progress: letters.contains('i'),
        failed: letters.contains('f').then(|| "quiesce-timeout".to_owned()),
    }
}

fn describe(evaluation: Evaluation) -> String {
    let annotation = match (evaluation.owner, evaluation.annotation) {
        (_, None) => String::new(),
        (Owner::New, Some(OwnershipAnnotation::Private))
        | (Owner::Legacy, Some(OwnershipAnnotation::Legacy)) => "+".to_owned(),
        (owner, Some(other)) => format!(" {other:?} does not record {owner:?}"),
    };
    let invalid = evaluation
        .invalid
        .map_or(String::new(), |invalid| format!(" {}", invalid.reason()));
    format!("{:?}{annotation}{invalid}", evaluation.owner)
}

/// Every combination once, with its evaluation.
fn all() -> impl Iterator<Item = (&'static str, ObservedGroups, Evaluation)> {
    TABLE.iter().flat_map(|(letters, _)| {
        ObservedGroups::ALL
            .map(|observed| (*letters, observed, evaluate(&protocol(letters), observed)))
    })
}

/// Check M09.
#[test]
fn every_combination_of_annotations_and_groups_has_an_owner() {
    for (letters, expected) in TABLE {
        let found =
            ObservedGroups::ALL.map(|observed| describe(evaluate(&protocol(letters), observed)));
        assert_eq!(found, expected, "annotations {letters:?}");
    }
    let mut seen: Vec<_> = TABLE.iter().map(|(letters, _)| protocol(letters)).collect();
    seen.dedup();
    let distinct = seen
        .iter()
        .enumerate()
        .all(|(n, one)| !seen[..n].contains(one));
    assert!(
        distinct && seen.len() == 16,
        "the table holds each combination once"
    );
}

/// An operator owns only clusters whose objects are in its own groups.
#[test]
fn the_owner_agrees_with_the_observed_groups() {
    for (letters, observed, evaluation) in all() {
        let allowed = match evaluation.owner {
            Owner::New => matches!(observed, ObservedGroups::None | ObservedGroups::Private),
            Owner::Legacy => matches!(observed, ObservedGroups::None | ObservedGroups::Standard),
            Owner::Migration => letters.contains('i'),
            Owner::Undecided => observed == ObservedGroups::Both,
        };
        assert!(allowed, "{letters:?} {observed:?}: {evaluation:?}");
    }
}

#[test]
fn a_locked_cluster_belongs_to_the_migration() {
    for (letters, observed, evaluation) in all() {
        let locked = letters.contains('i');
        assert_eq!(
            evaluation.owner == Owner::Migration,
            locked,
            "{letters:?} {observed:?}"
        );
    }
}

#[test]
fn the_missing_annotation_makes_the_state_valid() {
    for (letters, observed, evaluation) in all() {
        let mut annotated = protocol(letters);
        match evaluation.annotation {
            Some(OwnershipAnnotation::Private) => annotated.private = true,
            Some(OwnershipAnnotation::Legacy) => annotated.legacy = true,
            None => continue,
        }
        let again = evaluate(&annotated, observed);
        assert_eq!(
            (again.owner, again.annotation, again.invalid),
            (evaluation.owner, None, None),
            "{letters:?} {observed:?}"
        );
    }
}

#[test]
fn invalid_states_say_what_to_do() {
    for (letters, observed, evaluation) in all() {
        if let Some(invalid) = evaluation.invalid {
            let text = invalid.to_string();
            assert!(text.contains(": "), "{letters:?} {observed:?}: {text}");
        }
    }
}

/// Check O02.
#[test]
fn at_most_one_operator_acts_on_a_hosted_cluster() {
    for (letters, observed, evaluation) in all() {
        let new = decide(Scope::Private, &evaluation);
        let legacy = decide(Scope::Legacy, &evaluation);
        assert!(
            new == Decision::Skip || legacy == Decision::Skip,
            "{letters:?} {observed:?}: {new:?} and {legacy:?}"
        );
    }
}

#[test]
fn the_legacy_operator_reconciles_annotated_clusters_only() {
    for (letters, observed, evaluation) in all() {
        let decision = decide(Scope::Legacy, &evaluation);
        let place = format!("{letters:?} {observed:?}: {decision:?}");
        match decision {
            Decision::Reconcile => assert_eq!(
                (evaluation.owner, evaluation.annotation),
                (Owner::Legacy, None),
                "{place}"
            ),
            Decision::Skip => {}
            Decision::Annotate(_) | Decision::ReportInvalid => unreachable!("{place}"),
        }
    }
}

#[test]
fn invalid_states_are_reported_by_exactly_one_operator() {
    for (letters, observed, evaluation) in all() {
        let reporting = [Scope::Private, Scope::Legacy]
            .into_iter()
            .filter(|scope| {
                matches!(
                    decide(*scope, &evaluation),
                    Decision::Reconcile | Decision::ReportInvalid
                )
            })
            .count();
        if evaluation.invalid.is_some() {
            assert_eq!(reporting, 1, "{letters:?} {observed:?}: {evaluation:?}");
        }
    }
}

/// Check O01.
#[test]
fn the_new_operator_reconciles_no_cluster_with_standard_objects() {
    for (letters, observed, evaluation) in all() {
        if decide(Scope::Private, &evaluation) == Decision::Reconcile {
            assert!(
                matches!(observed, ObservedGroups::None | ObservedGroups::Private),
                "{letters:?} {observed:?}"
            );
            assert_eq!(evaluation.annotation, None, "{letters:?} {observed:?}");
        }
    }
}

#[test]
fn expected_types_agree_with_the_owner() {
    let mut expected = Vec::new();
    for (letters, _, _) in all() {
        let protocol = protocol(letters);
        let Some(types) = expected_types(&protocol) else {
            continue;
        };
        expected.push(types);
        assert!(!protocol.in_progress, "{letters:?}");
        let owner = match types {
            CapiTypes::Private => Owner::New,
            CapiTypes::Standard => Owner::Legacy,
        };
        // No objects yet means the same as objects of the expected types.
        for observed in [ObservedGroups::None, ObservedGroups::None.with(types)] {
            let evaluation = evaluate(&protocol, observed);
            assert_eq!(
                (evaluation.annotation, evaluation.invalid),
                (None, None),
                "{letters:?}"
            );
            assert_eq!(evaluation.owner, owner, "{letters:?}");
        }
    }
    for types in [CapiTypes::Private, CapiTypes::Standard] {
        assert!(expected.contains(&types), "{types:?}");
    }
}

#[test]
fn may_reconcile_holds_for_some_observed_groups() {
    for (scope, letters, expected) in [
        (Scope::Private, "", false),
        (Scope::Private, "p", true),
        (Scope::Private, "pi", false),
        (Scope::Legacy, "", false),
        (Scope::Legacy, "l", true),
        (Scope::Legacy, "li", false),
        (Scope::All, "", true),
    ] {
        let found = may_reconcile(scope, &protocol(letters));
        assert_eq!(found, expected, "{scope:?} {letters:?}");
    }
}
