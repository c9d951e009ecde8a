//! The check itself is checked: correct histories pass, and each kind of error is found.

use super::*;
use crate::fidelity::random::Random;

fn event(version: u64) -> Event {
    Event {
        version,
        name: format!("o{}", version % 3),
        change: Change::Modified,
        digest: version * 31,
    }
}

fn seen(version: u64) -> Entry {
    Entry::Seen(event(version))
}

fn listed(version: u64, state: &[(&str, u64)]) -> Entry {
    let state = state
        .iter()
        .map(|&(name, version)| (name.to_owned(), version))
        .collect();
    Entry::Listed { version, state }
}

/// Versions 11 to 19 of three objects that were there before.
fn reference() -> Reference {
    let start = listed(10, &[("o0", 3), ("o1", 4), ("o2", 5)]);
    let history: Vec<Entry> = std::iter::once(start).chain((11..20).map(seen)).collect();
    Reference::new(&history).unwrap()
}

fn start() -> Entry {
    listed(10, &[("o0", 3), ("o1", 4), ("o2", 5)])
}

fn check(entries: impl IntoIterator<Item = Entry>) -> Result<Summary, Violation> {
    let history: Vec<Entry> = std::iter::once(start()).chain(entries).collect();
    reference().check(&history)
}

#[test]
fn a_correct_history_passes_with_any_interruption() {
    let summary = check([
        seen(11),
        seen(12),
        Entry::Resumed(12),
        Entry::Resumed(12),
        seen(13),
        Entry::Bookmark(13),
        seen(14),
        listed(16, &[("o0", 15), ("o1", 16), ("o2", 14)]),
        seen(17),
        seen(18),
        seen(19),
        Entry::Bookmark(40),
        Entry::Resumed(40),
    ]);
    let expected = Summary {
        seen: 7,
        bookmarks: 2,
        resumed: 3,
        relisted: 1,
    };
    assert_eq!(summary, Ok(expected));
}

#[test]
fn each_kind_of_history_error_is_found() {
    let all = || (11..20).map(seen);
    let but = |version: u64| all().filter(move |entry| *entry != seen(version));
    let name = |version: u64| format!("o{}", version % 3);
    let lost = |version| Violation::Lost {
        name: name(version),
        version,
    };
    assert_eq!(check(but(14)), Err(lost(14)), "in the middle");
    assert_eq!(check(but(11)), Err(lost(11)), "at the start");
    assert_eq!(check(but(19)), Err(lost(19)), "at the end");
    assert_eq!(check([]), Err(lost(11)), "everything");
    assert_eq!(
        check([seen(11), Entry::Resumed(11), seen(13)]),
        Err(lost(12)),
        "across an interruption"
    );
    assert_eq!(
        check([seen(11), Entry::Bookmark(12)]),
        Err(lost(12)),
        "before a bookmark"
    );
    assert_eq!(
        check([seen(11), seen(12), seen(12)]),
        Err(Violation::Doubled {
            name: name(12),
            version: 12
        })
    );
    assert_eq!(
        check([seen(11), seen(12), Entry::Resumed(12), seen(12)]),
        Err(Violation::Doubled {
            name: name(12),
            version: 12
        })
    );
    assert_eq!(
        check([seen(11), seen(12), seen(13), seen(12)]),
        Err(Violation::Reordered {
            name: name(12),
            version: 12,
            after: 13
        })
    );
    let mut altered = event(11);
    altered.digest += 1;
    assert_eq!(
        check([Entry::Seen(altered)]),
        Err(Violation::Altered {
            name: name(11),
            version: 11
        })
    );
    assert_eq!(
        check(all().chain([seen(30)])),
        Err(Violation::Invented {
            name: name(30),
            version: 30
        })
    );
    assert_eq!(
        check([listed(12, &[("o0", 12), ("o1", 4), ("o2", 5)])]),
        Err(Violation::WrongList { version: 12 }),
        "a list without a change"
    );
    assert_eq!(
        check([listed(12, &[("o0", 12), ("o2", 11)])]),
        Err(Violation::WrongList { version: 12 }),
        "a list without an object"
    );
    assert_eq!(
        check([seen(11), listed(10, &[("o0", 3), ("o1", 4), ("o2", 5)])]),
        Err(Violation::WrongStart {
            version: 10,
            after: 11
        })
    );
    assert_eq!(
        check([seen(11), Entry::Resumed(12)]),
        Err(Violation::WrongStart {
            version: 12,
            after: 11
        })
    );
    assert_eq!(reference().check(&[seen(11)]), Err(Violation::NoStart));
}

#[test]
fn lists_follow_additions_and_deletions() {
    let change = |version, name: &str, change| {
        Entry::Seen(Event {
            version,
            name: name.to_owned(),
            change,
            digest: 0,
        })
    };
    let history = [
        listed(1, &[("a", 1)]),
        change(2, "b", Change::Added),
        change(3, "a", Change::Deleted),
        change(5, "a", Change::Added),
    ];
    let reference = Reference::new(&history).unwrap();
    assert_eq!(reference.len(), 3);
    for (version, state) in [
        (1, &[("a", 1)][..]),
        (2, &[("a", 1), ("b", 2)]),
        (4, &[("b", 2)]),
        (5, &[("a", 5), ("b", 2)]),
    ] {
        let rest = history[1..]
            .iter()
            .filter(|entry| matches!(entry, Entry::Seen(event) if event.version > version));
        let observed: Vec<Entry> = std::iter::once(listed(version, state))
            .chain(rest.cloned())
            .collect();
        assert!(reference.check(&observed).is_ok(), "{version}");
    }
}

#[test]
fn a_reference_is_read_in_order_and_without_gaps() {
    assert!(Reference::new(&[start(), seen(12), seen(12)]).is_err());
    assert!(Reference::new(&[start(), seen(12), seen(11)]).is_err());
    assert!(Reference::new(&[start(), seen(11), Entry::Resumed(12)]).is_err());
    assert!(Reference::new(&[start(), seen(11), Entry::Resumed(10)]).is_err());
    assert!(Reference::new(&[start(), seen(11), listed(12, &[])]).is_err());
    // A busy server ends watches that it cannot keep up with, and and the client continues where they were.
    assert!(Reference::new(&[start(), seen(11), Entry::Resumed(11), seen(12)]).is_ok());
    assert!(Reference::new(&[start(), Entry::Bookmark(15), Entry::Resumed(15)]).is_ok());
    assert!(Reference::new(&[seen(11)]).is_err());
}

/// Any single fault in a long, often interrupted history is found.
#[test]
fn no_single_fault_stays_hidden() {
    let mut random = Random::new(1);
    for _ in 0..500 {
        let mut history = interrupted(&mut random);
        assert!(reference().check(&history).is_ok(), "{history:?}");
        let at: Vec<usize> = (0..history.len())
            .filter(|&at| matches!(history[at], Entry::Seen(_)))
            .collect();
        let at = at[random.index(at.len())];
        match random.below(3) {
            0 => drop(history.remove(at)),
            1 => history.insert(at, history[at].clone()),
            _ => match &mut history[at] {
                Entry::Seen(event) => event.digest += 1,
                _ => unreachable!("only seen entries were chosen"),
            },
        }
        assert!(reference().check(&history).is_err(), "{history:?}");
    }
}

/// The reference with bookmarks and interruptions at random.
fn interrupted(random: &mut Random) -> Vec<Entry> {
    let mut history = vec![start()];
    for version in 11..20 {
        history.push(seen(version));
        match random.below(4) {
            0 => history.push(Entry::Bookmark(version)),
            1 => history.push(Entry::Resumed(version)),
            _ => {}
        }
    }
    history
}
