//! Which HostedCluster is migrated next: pure and deterministic.
//!
//! Migrations in progress continue first. Then come requested rollbacks, then clusters that were
//! never tried, the oldest first, and last those that failed and are due: failing clusters delay no others.

use jiff::Timestamp;
use ownership::MigrationState;

use super::candidate::Candidate;
use crate::cluster_ref::Id;

/// The work for a HostedCluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Work {
    /// Continue as recorded in the journal.
    Resume,
    /// From private to standard types.
    Reverse,
    /// From standard to private types, for the first time.
    Forward,
    /// The same, as a retry.
    Again,
}

/// A selected cluster and its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) id: Id,
    pub(crate) work: Work,
}

/// Whether new migrations begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// They do.
    Open,
    /// They do not. Migrations in progress continue.
    Paused,
}

/// The first `free` clusters, in order, that are not in progress.
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

/// The work for a cluster now, if there is any.
fn work(candidate: &Candidate, now: Timestamp) -> Option<Work> {
    if candidate.state == MigrationState::Active {
        return Some(Work::Resume);
    }
    // Clusters that are being deleted are not migrated, and neither are clusters in an invalid state.
    if candidate.is_deleting || !candidate.is_consistent {
        return None;
    }
    match candidate.state {
        MigrationState::Done => candidate.is_rollback_requested.then_some(Work::Reverse),
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
            is_consistent: true,
            is_deleting: false,
            is_held: false,
            is_rollback_requested: false,
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
    fn migrations_in_progress_come_first_and_failed_ones_last() {
        let old = Candidate {
            created: "2029-01-01T00:00:00Z".parse().ok(),
            ..candidate("old", MigrationState::Pending)
        };
        let young = Candidate {
            created: "2029-06-01T00:00:00Z".parse().ok(),
            ..candidate("a-young", MigrationState::Pending)
        };
        let obsolete = Candidate {
            is_rollback_requested: true,
            ..candidate("unwanted", MigrationState::Done)
        };
        let candidates = [
            failed("twice", 2, "2030-01-31T11:00:00Z"),
            failed("once", 1, "2030-01-31T11:00:00Z"),
            failed("not-due", 1, "2030-01-31T11:59:30Z"),
            young,
            candidate("done", MigrationState::Done),
            old,
            obsolete,
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
    fn held_deleting_or_inconsistent_clusters_are_skipped() {
        let one = || candidate("one", MigrationState::Pending);
        let held = Candidate {
            is_held: true,
            ..one()
        };
        let going = Candidate {
            is_deleting: true,
            ..one()
        };
        let unsure = Candidate {
            is_consistent: false,
            ..one()
        };
        let held_failure = Candidate {
            is_held: true,
            ..failed("one", 1, "2030-01-01T00:00:00Z")
        };
        for candidate in [held, going, unsure, held_failure] {
            assert_eq!(chosen(&[candidate], Gate::Open, 1), [], "");
        }
        // A migration in progress continues, whatever is requested for its cluster.
        let begun = Candidate {
            is_held: true,
            is_deleting: true,
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
                |(index, ((state, failure), failed, is_held, is_rollback_requested))| Candidate {
                    failure,
                    attempts: Attempts {
                        failed,
                        last: Some(Timestamp::UNIX_EPOCH),
                    },
                    is_held,
                    is_rollback_requested,
                    ..candidate(&format!("c{index}"), state)
                },
            )
            .collect()
        })
    }

    proptest! {
        /// In a fleet in which some clusters always fail, all others are migrated without delay.
        #[test]
        fn failing_clusters_do_not_delay_others(candidates in candidates(), limit in 1..5_usize) {
            let mut candidates = candidates;
            let poisoned: BTreeSet<_> = candidates.iter().step_by(3).map(|it| it.id.clone()).collect();
            let healthy = candidates.iter().filter(|it| it.state == MigrationState::Pending && !it.is_held
                && !poisoned.contains(&it.id)).count();
            let fresh = candidates.iter().filter(|it| matches!(it.state, MigrationState::Pending | MigrationState::Active)
                || it.is_rollback_requested && it.state == MigrationState::Done).count();
            let mut done = 0;
            // Each round completes what it began; clusters that were never tried come next.
            for _ in 0..fresh.div_ceil(limit) {
                let round = choose(&candidates, Gate::Open, now(), limit, |_| false);
                prop_assert!(round.len() <= limit);
                for choice in round {
                    let candidate = candidates.iter_mut().find(|it| it.id == choice.id).unwrap();
                    if choice.work == Work::Reverse {
                        (candidate.is_rollback_requested, candidate.is_held) = (false, true);
                        candidate.state = MigrationState::Pending;
                        candidate.failure = None;
                    } else if poisoned.contains(&choice.id) {
                        candidate.state = MigrationState::Failed;
                        candidate.failure = Some(Reason::Conflict);
                        candidate.attempts = candidate.attempts.and_one(now());
                    } else {
                        done += usize::from(choice.work == Work::Forward);
                        candidate.state = MigrationState::Done;
                        candidate.is_rollback_requested = false;
                    }
                }
            }
            prop_assert_eq!(done, healthy);
        }
    }
}
