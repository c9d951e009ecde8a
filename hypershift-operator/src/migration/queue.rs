//! Which hosted cluster is migrated next: pure, and the same for the same fleet.
//!
//! What was begun is continued first, whoever began it. Then come those that a person asks for, then those that were
//! never tried, the oldest first, and last those that failed and are due: a cluster that always fails delays nobody.

use jiff::Timestamp;
use ownership::MigrationState;

use super::candidate::Candidate;
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
    candidates: &[Candidate],
    gate: Gate,
    now: Timestamp,
    free: usize,
    under_way: impl Fn(&Id) -> bool,
) -> Vec<Choice> {
    let mut waiting: Vec<_> = candidates
        .iter()
        .filter(|candidate| !under_way(&candidate.id))
        .filter_map(|candidate| Some((work(candidate, now)?, candidate)))
        .filter(|(work, _)| gate == Gate::Open || *work == Work::Resume)
        .collect();
    waiting.sort_by_key(|(work, candidate)| {
        let Candidate { id, created, .. } = candidate;
        (*work, candidate.attempts.failed, *created, id)
    });
    let chosen = waiting.into_iter().take(free);
    chosen
        .map(|(work, candidate)| Choice {
            id: candidate.id.clone(),
            work,
        })
        .collect()
}

/// What is to be done with a cluster now, if anything is.
fn work(candidate: &Candidate, now: Timestamp) -> Option<Work> {
    if candidate.state == MigrationState::Active {
        return Some(Work::Resume);
    }
    // One that is being deleted goes the way that it is on, and one that is nobody's is looked at by a person first.
    if candidate.is_going || !candidate.is_sure {
        return None;
    }
    match candidate.state {
        MigrationState::Done => candidate.is_unwanted.then_some(Work::Reverse),
        MigrationState::Pending => (!candidate.is_held).then_some(Work::Forward),
        MigrationState::Failed => {
            let due = candidate.due()?;
            (!candidate.is_held && due <= now).then_some(Work::Again)
        }
        MigrationState::Active => Some(Work::Resume),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use migration::failure::Reason;
    use proptest::prelude::*;

    use super::super::candidate::Attempts;
    use super::*;

    fn now() -> Timestamp {
        "2030-01-31T12:00:00Z".parse().unwrap()
    }

    fn candidate(name: &str, state: MigrationState) -> Candidate {
        Candidate {
            id: Id {
                namespace: "clusters".to_owned(),
                name: name.to_owned(),
            },
            created: None,
            state,
            failure: (state == MigrationState::Failed).then_some(Reason::Conflict),
            attempts: Attempts::default(),
            is_sure: true,
            is_going: false,
            is_held: false,
            is_unwanted: false,
        }
    }

    fn failed(name: &str, failed: u32, last: &str) -> Candidate {
        Candidate {
            attempts: Attempts {
                failed,
                last: last.parse().ok(),
            },
            ..candidate(name, MigrationState::Failed)
        }
    }

    fn chosen(candidates: &[Candidate], gate: Gate, free: usize) -> Vec<(String, Work)> {
        let chosen = choose(candidates, gate, now(), free, |_| false);
        chosen.into_iter().map(|it| (it.id.name, it.work)).collect()
    }

    #[test]
    fn m19_what_was_begun_comes_first_and_what_failed_last() {
        let old = Candidate {
            created: "2029-01-01T00:00:00Z".parse().ok(),
            ..candidate("old", MigrationState::Pending)
        };
        let young = Candidate {
            created: "2029-06-01T00:00:00Z".parse().ok(),
            ..candidate("a-young", MigrationState::Pending)
        };
        let unwanted = Candidate {
            is_unwanted: true,
            ..candidate("unwanted", MigrationState::Done)
        };
        let candidates = [
            failed("twice", 2, "2030-01-31T11:00:00Z"),
            failed("once", 1, "2030-01-31T11:00:00Z"),
            failed("not-due", 1, "2030-01-31T11:59:30Z"),
            young,
            candidate("done", MigrationState::Done),
            old,
            unwanted,
            candidate("begun", MigrationState::Active),
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
        assert_eq!(chosen(&candidates, Gate::Open, 10), expected);
        assert_eq!(chosen(&candidates, Gate::Open, 3), expected[..3]);
        assert_eq!(chosen(&candidates, Gate::Paused, 10), expected[..1]);
    }

    #[test]
    fn what_is_held_or_goes_or_is_unsure_is_left_alone() {
        let one = || candidate("one", MigrationState::Pending);
        let held = Candidate {
            is_held: true,
            ..one()
        };
        let going = Candidate {
            is_going: true,
            ..one()
        };
        let unsure = Candidate {
            is_sure: false,
            ..one()
        };
        let held_failure = Candidate {
            is_held: true,
            ..failed("one", 1, "2030-01-01T00:00:00Z")
        };
        for candidate in [held, going, unsure, held_failure] {
            assert_eq!(chosen(&[candidate], Gate::Open, 1), [], "");
        }
        // A migration that has begun is ended, whatever its cluster is asked for meanwhile.
        let begun = Candidate {
            is_held: true,
            is_going: true,
            ..candidate("one", MigrationState::Active)
        };
        assert_eq!(chosen(&[begun], Gate::Paused, 1).len(), 1);
    }

    fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
        let state = prop_oneof![
            Just((MigrationState::Done, None)),
            Just((MigrationState::Pending, None)),
            Just((MigrationState::Active, None)),
            Just((MigrationState::Failed, Some(Reason::Conflict))),
            Just((MigrationState::Failed, Some(Reason::PreflightFailed))),
        ];
        let one = (state, 0..4_u32, any::<bool>(), any::<bool>());
        prop::collection::vec(one, 0..30).prop_map(|all| {
            let all = all.into_iter().enumerate();
            all.map(
                |(index, ((state, failure), failed, is_held, is_unwanted))| Candidate {
                    failure,
                    attempts: Attempts {
                        failed,
                        last: Some(Timestamp::UNIX_EPOCH),
                    },
                    is_held,
                    is_unwanted,
                    ..candidate(&format!("c{index}"), state)
                },
            )
            .collect()
        })
    }

    proptest! {
        /// A fleet in which every attempt at some clusters fails: all others are done, one by one, none of them late.
        #[test]
        fn m19_no_healthy_cluster_waits_for_one_that_fails(candidates in candidates(), limit in 1..5_usize) {
            let mut candidates = candidates;
            let poisoned: BTreeSet<_> = candidates.iter().step_by(3).map(|it| it.id.clone()).collect();
            let healthy = candidates.iter().filter(|it| it.state == MigrationState::Pending && !it.is_held
                && !poisoned.contains(&it.id)).count();
            let fresh = candidates.iter().filter(|it| matches!(it.state, MigrationState::Pending | MigrationState::Active)
                || it.is_unwanted && it.state == MigrationState::Done).count();
            let mut done = 0;
            // Each round ends all that it began; whoever was never tried has its turn within as many rounds.
            for _ in 0..fresh.div_ceil(limit) {
                let round = choose(&candidates, Gate::Open, now(), limit, |_| false);
                prop_assert!(round.len() <= limit);
                for choice in round {
                    let candidate = candidates.iter_mut().find(|it| it.id == choice.id).unwrap();
                    if choice.work == Work::Reverse {
                        (candidate.is_unwanted, candidate.is_held) = (false, true);
                        candidate.state = MigrationState::Pending;
                        candidate.failure = None;
                    } else if poisoned.contains(&choice.id) {
                        candidate.state = MigrationState::Failed;
                        candidate.failure = Some(Reason::Conflict);
                        candidate.attempts = candidate.attempts.and_one(now());
                    } else {
                        done += usize::from(choice.work == Work::Forward);
                        candidate.state = MigrationState::Done;
                        candidate.is_unwanted = false;
                    }
                }
            }
            prop_assert_eq!(done, healthy);
        }
    }
}
