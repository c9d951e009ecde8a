//! Which hosted cluster is migrated next: pure, and the same for the same fleet.
//!
//! What was begun is continued first, whoever began it. Then come those that a person asks for, then those that were
//! never tried, the oldest first, and last those that failed and are due: a cluster that always fails delays nobody.

use jiff::Timestamp;

use super::standing::{Member, Standing};
use crate::hosted_cluster::Id;

/// What is to be done with a hosted cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Work {
    /// Go on where the journal says.
    Resume,
    /// From private to standard types.
    Reverse,
    /// From standard to private types, for the first time.
    Forward,
    /// The same, once more.
    Again,
}

/// One that is begun now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) id: Id,
    pub(crate) work: Work,
}

/// Whether new migrations are begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// They are.
    Open,
    /// They are not. What was begun goes on: half of a migration is no state to rest in.
    Paused,
}

/// The first `free` ones, in order, of those that are not under way.
pub(crate) fn choose(
    members: &[Member],
    gate: Gate,
    now: Timestamp,
    free: usize,
    under_way: impl Fn(&Id) -> bool,
) -> Vec<Choice> {
    let mut waiting: Vec<_> = members
        .iter()
        .filter(|member| !under_way(&member.id))
        .filter_map(|member| Some((work(member, now)?, member)))
        .filter(|(work, _)| gate == Gate::Open || *work == Work::Resume)
        .collect();
    waiting.sort_by_key(|(work, member)| {
        let Member { id, created, .. } = member;
        (*work, member.attempts.failed, *created, id)
    });
    let chosen = waiting.into_iter().take(free);
    chosen
        .map(|(work, member)| Choice {
            id: member.id.clone(),
            work,
        })
        .collect()
}

/// What is to be done with a cluster now, if anything is.
fn work(member: &Member, now: Timestamp) -> Option<Work> {
    if member.standing == Standing::Active {
        return Some(Work::Resume);
    }
    // One that is being deleted goes the way that it is on, and one that is nobody's is looked at by a person first.
    if member.is_going || !member.is_sure {
        return None;
    }
    match member.standing {
        Standing::Done => member.is_unwanted.then_some(Work::Reverse),
        Standing::Pending => (!member.is_held).then_some(Work::Forward),
        Standing::Failed(_) => {
            let due = member.due()?;
            (!member.is_held && due <= now).then_some(Work::Again)
        }
        Standing::Active => Some(Work::Resume),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use migration::failure::Reason;
    use proptest::prelude::*;

    use super::super::standing::Attempts;
    use super::*;

    fn now() -> Timestamp {
        "2030-01-31T12:00:00Z".parse().unwrap()
    }

    fn member(name: &str, standing: Standing) -> Member {
        Member {
            id: Id {
                namespace: "clusters".to_owned(),
                name: name.to_owned(),
            },
            created: None,
            standing,
            attempts: Attempts::default(),
            is_sure: true,
            is_going: false,
            is_held: false,
            is_unwanted: false,
        }
    }

    fn failed(name: &str, failed: u32, last: &str) -> Member {
        Member {
            attempts: Attempts {
                failed,
                last: last.parse().ok(),
            },
            ..member(name, Standing::Failed(Some(Reason::Conflict)))
        }
    }

    fn chosen(members: &[Member], gate: Gate, free: usize) -> Vec<(String, Work)> {
        let chosen = choose(members, gate, now(), free, |_| false);
        chosen.into_iter().map(|it| (it.id.name, it.work)).collect()
    }

    #[test]
    fn m19_what_was_begun_comes_first_and_what_failed_last() {
        let old = Member {
            created: "2029-01-01T00:00:00Z".parse().ok(),
            ..member("old", Standing::Pending)
        };
        let young = Member {
            created: "2029-06-01T00:00:00Z".parse().ok(),
            ..member("a-young", Standing::Pending)
        };
        let unwanted = Member {
            is_unwanted: true,
            ..member("unwanted", Standing::Done)
        };
        let members = [
            failed("twice", 2, "2030-01-31T11:00:00Z"),
            failed("once", 1, "2030-01-31T11:00:00Z"),
            failed("not-due", 1, "2030-01-31T11:59:30Z"),
            young,
            member("done", Standing::Done),
            old,
            unwanted,
            member("begun", Standing::Active),
        ];
        let expected = [
            ("begun", Work::Resume),
            ("unwanted", Work::Reverse),
            ("old", Work::Forward),
            ("a-young", Work::Forward),
            ("once", Work::Again),
            ("twice", Work::Again),
        ];
        let expected = expected.map(|(name, work)| (name.to_owned(), work));
        assert_eq!(chosen(&members, Gate::Open, 10), expected);
        assert_eq!(chosen(&members, Gate::Open, 3), expected[..3]);
        assert_eq!(chosen(&members, Gate::Paused, 10), expected[..1]);
    }

    #[test]
    fn what_is_held_or_goes_or_is_unsure_is_left_alone() {
        let one = || member("one", Standing::Pending);
        let held = Member {
            is_held: true,
            ..one()
        };
        let going = Member {
            is_going: true,
            ..one()
        };
        let unsure = Member {
            is_sure: false,
            ..one()
        };
        let held_failure = Member {
            is_held: true,
            ..failed("one", 1, "2030-01-01T00:00:00Z")
        };
        for member in [held, going, unsure, held_failure] {
            assert_eq!(chosen(&[member], Gate::Open, 1), [], "");
        }
        // A migration that has begun is ended, whatever its cluster is asked for meanwhile.
        let begun = Member {
            is_held: true,
            is_going: true,
            ..member("one", Standing::Active)
        };
        assert_eq!(chosen(&[begun], Gate::Paused, 1).len(), 1);
    }

    fn members() -> impl Strategy<Value = Vec<Member>> {
        let standing = prop_oneof![
            Just(Standing::Done),
            Just(Standing::Pending),
            Just(Standing::Active),
            Just(Standing::Failed(Some(Reason::Conflict))),
            Just(Standing::Failed(Some(Reason::PreflightFailed))),
        ];
        let one = (standing, 0..4_u32, any::<bool>(), any::<bool>());
        prop::collection::vec(one, 0..30).prop_map(|all| {
            let all = all.into_iter().enumerate();
            all.map(|(index, (standing, failed, is_held, is_unwanted))| Member {
                attempts: Attempts {
                    failed,
                    last: Some(Timestamp::UNIX_EPOCH),
                },
                is_held,
                is_unwanted,
                ..member(&format!("c{index}"), standing)
            })
            .collect()
        })
    }

    proptest! {
        /// A fleet in which every attempt at some clusters fails: all others are done, one by one, none of them late.
        #[test]
        fn m19_no_healthy_cluster_waits_for_one_that_fails(members in members(), limit in 1..5_usize) {
            let mut members = members;
            let poisoned: BTreeSet<_> = members.iter().step_by(3).map(|it| it.id.clone()).collect();
            let healthy = members.iter().filter(|it| it.standing == Standing::Pending && !it.is_held
                && !poisoned.contains(&it.id)).count();
            let fresh = members.iter().filter(|it| matches!(it.standing, Standing::Pending | Standing::Active)
                || it.is_unwanted && it.standing == Standing::Done).count();
            let mut done = 0;
            // Each round ends all that it began; whoever was never tried has its turn within as many rounds.
            for _ in 0..fresh.div_ceil(limit) {
                let round = choose(&members, Gate::Open, now(), limit, |_| false);
                prop_assert!(round.len() <= limit);
                for choice in round {
                    let member = members.iter_mut().find(|it| it.id == choice.id).unwrap();
                    if choice.work == Work::Reverse {
                        (member.is_unwanted, member.is_held) = (false, true);
                        member.standing = Standing::Pending;
                    } else if poisoned.contains(&choice.id) {
                        member.standing = Standing::Failed(Some(Reason::Conflict));
                        member.attempts = member.attempts.and_one(now());
                    } else {
                        done += usize::from(choice.work == Work::Forward);
                        member.standing = Standing::Done;
                        member.is_unwanted = false;
                    }
                }
            }
            prop_assert_eq!(done, healthy);
        }
    }
}
