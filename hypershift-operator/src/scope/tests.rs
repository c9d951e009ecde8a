//! All combinations of annotations and evidence.

use super::*;

/// Annotations as letters (`p`rivate, `l`egacy, `i`n progress, `f`ailed), then the verdict on each evidence of
/// [`Evidence::ALL`]: the owner, `+` when the mark of that owner is due, and the reason when the state is invalid.
const TABLE: [(&str, [&str; 4]); 16] = [
    (
        "",
        ["New+", "Legacy+", "New+", "Nobody ObjectsInBothGroups"],
    ),
    (
        "p",
        [
            "New",
            "Legacy PrivateWithStandardObjects",
            "New",
            "Nobody ObjectsInBothGroups",
        ],
    ),
    (
        "l",
        [
            "Legacy",
            "Legacy",
            "New LegacyWithPrivateObjects",
            "Nobody ObjectsInBothGroups",
        ],
    ),
    (
        "f",
        [
            "Legacy+",
            "Legacy+",
            "New LegacyWithPrivateObjects",
            "Nobody ObjectsInBothGroups",
        ],
    ),
    (
        "lf",
        [
            "Legacy",
            "Legacy",
            "New LegacyWithPrivateObjects",
            "Nobody ObjectsInBothGroups",
        ],
    ),
    (
        "pl",
        [
            "New LegacyAndPrivate",
            "Legacy LegacyAndPrivate",
            "New LegacyAndPrivate",
            "Nobody LegacyAndPrivate",
        ],
    ),
    (
        "pf",
        [
            "New FailedAndPrivate",
            "Legacy FailedAndPrivate",
            "New FailedAndPrivate",
            "Nobody FailedAndPrivate",
        ],
    ),
    (
        "plf",
        [
            "New LegacyAndPrivate",
            "Legacy LegacyAndPrivate",
            "New LegacyAndPrivate",
            "Nobody LegacyAndPrivate",
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

fn describe(verdict: Verdict) -> String {
    let mark = match (verdict.owner, verdict.mark) {
        (_, None) => String::new(),
        (Owner::New, Some(Mark::Private)) | (Owner::Legacy, Some(Mark::Legacy)) => "+".to_owned(),
        (owner, Some(mark)) => format!("{mark:?} is not {owner:?}'s mark"),
    };
    let invalid = verdict
        .invalid
        .map_or(String::new(), |invalid| format!(" {}", invalid.reason()));
    format!("{:?}{mark}{invalid}", verdict.owner)
}

/// Every combination once, with its verdict.
fn all() -> impl Iterator<Item = (&'static str, Evidence, Verdict)> {
    TABLE.iter().flat_map(|(letters, _)| {
        Evidence::ALL.map(|evidence| (*letters, evidence, verdict(&protocol(letters), evidence)))
    })
}

#[test]
fn m09_every_combination_has_its_verdict() {
    for (letters, expected) in TABLE {
        let found = Evidence::ALL.map(|evidence| describe(verdict(&protocol(letters), evidence)));
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

#[test]
fn nobody_writes_into_the_world_of_another() {
    for (letters, evidence, verdict) in all() {
        let allowed = match verdict.owner {
            Owner::New => matches!(evidence, Evidence::None | Evidence::Private),
            Owner::Legacy => matches!(evidence, Evidence::None | Evidence::Standard),
            Owner::Migration => letters.contains('i'),
            Owner::Nobody => evidence == Evidence::Both,
        };
        assert!(allowed, "{letters:?} {evidence:?}: {verdict:?}");
    }
}

#[test]
fn a_lock_is_honoured_whatever_else_is_wrong() {
    for (letters, evidence, verdict) in all() {
        let locked = letters.contains('i');
        assert_eq!(
            verdict.owner == Owner::Migration,
            locked,
            "{letters:?} {evidence:?}"
        );
    }
}

#[test]
fn a_due_mark_settles_the_question() {
    for (letters, evidence, verdict) in all() {
        let mut marked = protocol(letters);
        match verdict.mark {
            Some(Mark::Private) => marked.private = true,
            Some(Mark::Legacy) => marked.legacy = true,
            None => continue,
        }
        let again = super::verdict(&marked, evidence);
        assert_eq!(
            (again.owner, again.mark, again.invalid),
            (verdict.owner, None, None),
            "{letters:?} {evidence:?}"
        );
    }
}

#[test]
fn invalid_states_say_what_to_do() {
    for (letters, evidence, verdict) in all() {
        if let Some(invalid) = verdict.invalid {
            let text = invalid.to_string();
            assert!(text.contains(": "), "{letters:?} {evidence:?}: {text}");
        }
    }
}

#[test]
fn o02_no_hosted_cluster_is_touched_by_two_operators() {
    for (letters, evidence, verdict) in all() {
        let new = duty(Scope::Private, &verdict);
        let legacy = duty(Scope::Legacy, &verdict);
        assert!(
            new == Duty::Leave || legacy == Duty::Leave,
            "{letters:?} {evidence:?}: {new:?} and {legacy:?}"
        );
    }
}

#[test]
fn the_legacy_operator_acts_on_marked_clusters_only_and_marks_none() {
    for (letters, evidence, verdict) in all() {
        let duty = duty(Scope::Legacy, &verdict);
        let place = format!("{letters:?} {evidence:?}: {duty:?}");
        match duty {
            Duty::Own => assert_eq!(
                (verdict.owner, verdict.mark),
                (Owner::Legacy, None),
                "{place}"
            ),
            Duty::Leave => {}
            Duty::Mark(_) | Duty::Report => unreachable!("{place}"),
        }
    }
}

#[test]
fn invalid_states_are_told_by_exactly_one_operator() {
    for (letters, evidence, verdict) in all() {
        let telling = [Scope::Private, Scope::Legacy]
            .into_iter()
            .filter(|scope| matches!(duty(*scope, &verdict), Duty::Own | Duty::Report))
            .count();
        if verdict.invalid.is_some() {
            assert_eq!(telling, 1, "{letters:?} {evidence:?}: {verdict:?}");
        }
    }
}

#[test]
fn o01_what_the_new_operator_acts_on_has_no_standard_objects() {
    for (letters, evidence, verdict) in all() {
        if duty(Scope::Private, &verdict) == Duty::Own {
            assert!(
                matches!(evidence, Evidence::None | Evidence::Private),
                "{letters:?} {evidence:?}"
            );
            assert_eq!(verdict.mark, None, "{letters:?} {evidence:?}");
        }
    }
}

#[test]
fn evidence_that_may_be_remembered_decides_nothing_new() {
    let mut claimed_sides = Vec::new();
    for (letters, _, _) in all() {
        let protocol = protocol(letters);
        let Some(side) = super::expected(&protocol) else {
            continue;
        };
        claimed_sides.push(side);
        assert!(!protocol.in_progress, "{letters:?}");
        let owner = match side {
            Side::Private => Owner::New,
            Side::Standard => Owner::Legacy,
        };
        // That there is nothing yet says the same as what there is going to be.
        for evidence in [Evidence::None, Evidence::None.with(side)] {
            let verdict = verdict(&protocol, evidence);
            assert_eq!((verdict.mark, verdict.invalid), (None, None), "{letters:?}");
            assert_eq!(verdict.owner, owner, "{letters:?}");
        }
    }
    for side in [Side::Private, Side::Standard] {
        assert!(claimed_sides.contains(&side), "{side:?}");
    }
}

#[test]
fn what_may_not_be_owned_is_owned_on_no_evidence() {
    for (scope, letters, expected) in [
        (Scope::Private, "", false),
        (Scope::Private, "p", true),
        (Scope::Private, "pi", false),
        (Scope::Legacy, "", false),
        (Scope::Legacy, "l", true),
        (Scope::Legacy, "li", false),
        (Scope::All, "", true),
    ] {
        let found = may_own(scope, &protocol(letters));
        assert_eq!(found, expected, "{scope:?} {letters:?}");
    }
}

#[test]
fn evidence_adds_up() {
    let none = Evidence::default();
    assert_eq!(none.with(Side::Standard), Evidence::Standard);
    assert_eq!(
        none.with(Side::Private).with(Side::Private),
        Evidence::Private
    );
    assert_eq!(
        none.with(Side::Private).with(Side::Standard),
        Evidence::Both
    );
    assert_eq!(Evidence::Both.with(Side::Private), Evidence::Both);
}
