//! The hosted clusters as candidates for a migration: pure.

use std::time::Duration;

use api::annotations::{MIGRATION_ATTEMPTS, MIGRATION_HOLD};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use migration::failure::Reason;
use ownership::{Evaluation, MigrationState};

use crate::cluster_ref::{Id, protocol};

/// Failed attempts, as recorded in the annotation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// The number.
    pub(crate) failed: u32,
    /// The time of the last one, if it is known.
    pub(crate) last: Option<Timestamp>,
}

/// The migration-related state of a HostedCluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an annotation or a fact of its own"
)]
pub(crate) struct Candidate {
    pub(crate) id: Id,
    /// Older clusters go first.
    pub(crate) created: Option<Timestamp>,
    pub(crate) state: MigrationState,
    /// Why its last migration failed; `None` if it did not, or if the recorded reason is unknown.
    pub(crate) failure: Option<Reason>,
    pub(crate) attempts: Attempts,
    /// The owner agrees with the observed groups, and nothing contradicts it.
    pub(crate) is_consistent: bool,
    /// It is being deleted.
    pub(crate) is_deleting: bool,
    /// Its migration is held.
    pub(crate) is_held: bool,
    /// A rollback to standard types is requested.
    pub(crate) is_rollback_requested: bool,
}

// === impl Candidate ===

impl Candidate {
    /// Marks it as not migratable, whatever its annotations say: it has no control plane namespace of its own.
    pub(crate) fn refused(self) -> Self {
        let state = match self.state {
            MigrationState::Active => MigrationState::Pending,
            found => found,
        };
        Self {
            state,
            is_consistent: false,
            ..self
        }
    }

    /// From the metadata of a hosted cluster, and who owns it.
    pub(crate) fn new(id: Id, metadata: &ObjectMeta, evaluation: Evaluation) -> Self {
        let annotation = |key: &str| {
            let annotations = metadata.annotations.as_ref()?;
            annotations.get(key).map(String::as_str)
        };
        let protocol = protocol(metadata);
        let state = MigrationState::of(&protocol, evaluation.owner);
        let failure = protocol.failed.filter(|_| state == MigrationState::Failed);
        Self {
            id,
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            state,
            failure: failure.and_then(|reason| reason.parse().ok()),
            attempts: Attempts::of(metadata),
            is_consistent: evaluation.invalid.is_none() && evaluation.annotation.is_none(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_held: annotation(MIGRATION_HOLD) == Some("true"),
            is_rollback_requested: super::is_rollback_requested(metadata),
        }
    }

    /// When a failed migration is retried.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let Attempts { failed, last } = self.attempts;
        let wait: Duration = self.failure?.retry_after(failed.saturating_sub(1))?;
        last?.checked_add(wait).ok()
    }
}

// === impl Attempts ===

impl Attempts {
    /// From the annotation. An invalid one counts as none.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        let annotations = metadata.annotations.as_ref();
        let text = annotations.and_then(|it| it.get(MIGRATION_ATTEMPTS));
        Self::read(text.map(String::as_str))
    }

    fn read(text: Option<&str>) -> Self {
        let read = || {
            let (failed, last) = text?.split_once('@')?;
            Some(Self {
                failed: failed.parse().ok()?,
                last: Some(last.parse().ok()?),
            })
        };
        read().unwrap_or_default()
    }

    /// With one more failure, at this time.
    pub(crate) fn and_one(self, now: Timestamp) -> Self {
        Self {
            failed: self.failed.saturating_add(1),
            last: Some(now),
        }
    }

    /// The annotation's value.
    pub(crate) fn text(self) -> String {
        let last = self.last.unwrap_or(Timestamp::UNIX_EPOCH);
        format!("{}@{last:.0}", self.failed)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use api::annotations::{MIGRATION_FAILED, MIGRATION_IN_PROGRESS, PRIVATE_CAPI_TYPES, SCOPE};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use ownership::{ObservedGroups, evaluate};

    use super::*;

    pub(crate) fn metadata(name: &str, annotations: &[(&str, &str)]) -> ObjectMeta {
        let annotations = annotations.iter();
        ObjectMeta {
            namespace: Some("clusters".to_owned()),
            name: Some(name.to_owned()),
            creation_timestamp: "2030-01-01T00:00:00Z".parse().ok().map(Time),
            annotations: Some(
                annotations
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                    .collect(),
            ),
            ..ObjectMeta::default()
        }
    }

    fn candidate(annotations: &[(&str, &str)], observed: ObservedGroups) -> Candidate {
        let metadata = metadata("one", annotations);
        let evaluation = evaluate(&protocol(&metadata), observed);
        Candidate::new(Id::of(&metadata), &metadata, evaluation)
    }

    /// Check M09.
    #[test]
    fn annotations_and_groups_determine_the_migration_state() {
        use ObservedGroups::{Both, None as Nothing, Private, Standard};
        let all = [
            (PRIVATE_CAPI_TYPES, "true"),
            (SCOPE, "legacy"),
            (MIGRATION_IN_PROGRESS, "true"),
            (MIGRATION_FAILED, "conflict"),
        ];
        for bits in 0..16_u8 {
            let chosen = all.iter().enumerate();
            let chosen: Vec<_> = chosen
                .filter(|(bit, _)| bits & (1 << bit) != 0)
                .map(|(_, annotation)| *annotation)
                .collect();
            let (locked, failed) = (bits & 4 != 0, bits & 8 != 0);
            for observed in [Nothing, Standard, Private, Both] {
                let found = candidate(&chosen, observed);
                let found = (found.state, found.failure);
                let expected = match (locked, observed) {
                    (true, _) => (MigrationState::Active, None),
                    (false, Private) => (MigrationState::Done, None),
                    (false, Both) => (MigrationState::Pending, None),
                    (false, Standard) if failed => (MigrationState::Failed, Some(Reason::Conflict)),
                    (false, Standard) => (MigrationState::Pending, None),
                    // Without objects, the annotations decide; contradictory ones do not count.
                    (false, Nothing) => match bits & 3 {
                        2 if failed => (MigrationState::Failed, Some(Reason::Conflict)),
                        2 => (MigrationState::Pending, None),
                        0 if failed => (MigrationState::Failed, Some(Reason::Conflict)),
                        _ => (MigrationState::Done, None),
                    },
                };
                assert_eq!(found, expected, "{chosen:?} {observed:?}");
            }
        }
    }

    #[test]
    fn attempts_are_read_as_they_were_written() {
        let now: Timestamp = "2030-01-31T12:00:00Z".parse().unwrap();
        let attempts = Attempts::default().and_one(now).and_one(now);
        assert_eq!(attempts.text(), "2@2030-01-31T12:00:00Z");
        assert_eq!(Attempts::read(Some(&attempts.text())), attempts);
        for text in [None, Some("2"), Some("x@y"), Some("2@yesterday")] {
            assert_eq!(Attempts::read(text), Attempts::default(), "{text:?}");
        }
    }

    #[test]
    fn a_failure_is_retried_if_it_may_be_temporary() {
        let at = "1@2030-01-31T12:00:00Z";
        let later = "2@2030-01-31T12:00:00Z";
        for (reason, attempts, due) in [
            ("conflict", at, Some("2030-01-31T12:01:00Z")),
            ("conflict", later, Some("2030-01-31T12:02:00Z")),
            ("conflict", "9@2030-01-31T12:00:00Z", None),
            ("preflight-failed", at, None),
            ("of-another-tool", at, None),
            ("conflict", "", None),
        ] {
            let annotations = [
                (SCOPE, "legacy"),
                (MIGRATION_FAILED, reason),
                (MIGRATION_ATTEMPTS, attempts),
            ];
            let metadata = metadata("one", &annotations);
            let evaluation = evaluate(&protocol(&metadata), ObservedGroups::Standard);
            let candidate = Candidate::new(Id::of(&metadata), &metadata, evaluation);
            let due: Option<Timestamp> = due.map(|time| time.parse().unwrap());
            assert_eq!(candidate.due(), due, "{reason} {attempts}");
        }
    }

    /// T01: a cluster without a namespace of its own is never migrated, whatever its annotations say.
    #[test]
    fn a_refused_cluster_is_never_migrated() {
        for annotations in [
            &[(SCOPE, "legacy")][..],
            &[(SCOPE, "legacy"), (MIGRATION_IN_PROGRESS, "true")],
            &[
                (PRIVATE_CAPI_TYPES, "true"),
                (MIGRATION_IN_PROGRESS, "true"),
            ],
        ] {
            let metadata = metadata("one", annotations);
            for observed in ObservedGroups::ALL {
                let evaluation = evaluate(&protocol(&metadata), observed);
                let candidate = Candidate::new(Id::of(&metadata), &metadata, evaluation).refused();
                assert!(!candidate.is_consistent, "{annotations:?}");
                assert_ne!(candidate.state, MigrationState::Active, "{annotations:?}");
            }
        }
    }
}
