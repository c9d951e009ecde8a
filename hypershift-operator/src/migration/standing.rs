//! Where each hosted cluster stands on its way to private types: pure.

use std::time::Duration;

use api::annotations::{MIGRATION_ATTEMPTS, MIGRATION_HOLD, Protocol};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use migration::failure::Reason;
use ownership::{Evaluation, Owner};

use crate::hosted_cluster::{Id, protocol};

/// Where a hosted cluster stands. Each is in exactly one of these at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// On private types.
    Done,
    /// On standard types, or on nobody knows which.
    Pending,
    /// Locked by a migration.
    Active,
    /// On standard types, after a migration that failed. The reason is none of ours if somebody else wrote it.
    Failed(Option<Reason>),
}

/// Failures so far, as the annotation has them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// How many.
    pub(crate) failed: u32,
    /// When the last one was; none if nobody knows.
    pub(crate) last: Option<Timestamp>,
}

/// A hosted cluster, as far as migrations look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an annotation or a fact of its own"
)]
pub(crate) struct Member {
    pub(crate) id: Id,
    /// Who is older goes first.
    pub(crate) created: Option<Timestamp>,
    pub(crate) standing: Standing,
    pub(crate) attempts: Attempts,
    /// The owner is known by evidence, and nothing contradicts it.
    pub(crate) is_sure: bool,
    /// It is being deleted.
    pub(crate) is_going: bool,
    /// Somebody wants it to stay as it is.
    pub(crate) is_held: bool,
    /// Somebody wants it back on standard types.
    pub(crate) is_unwanted: bool,
}

// === impl Member ===

impl Member {
    /// One whose control plane has no namespace of its own, whatever it says of itself: nothing of it can be moved.
    pub(crate) fn refused(self) -> Self {
        let standing = match self.standing {
            Standing::Active => Standing::Pending,
            found => found,
        };
        Self {
            standing,
            is_sure: false,
            ..self
        }
    }

    /// Reads what a hosted cluster says of itself.
    pub(crate) fn new(id: Id, metadata: &ObjectMeta, verdict: Evaluation) -> Self {
        let annotation = |key: &str| {
            let annotations = metadata.annotations.as_ref()?;
            annotations.get(key).map(String::as_str)
        };
        Self {
            id,
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            standing: Standing::of(&protocol(metadata), verdict.owner),
            attempts: Attempts::of(metadata),
            is_sure: verdict.invalid.is_none() && verdict.annotation.is_none(),
            is_going: metadata.deletion_timestamp.is_some(),
            is_held: annotation(MIGRATION_HOLD) == Some("true"),
            is_unwanted: super::is_wanted_back(metadata),
        }
    }

    /// When a failed migration is begun again by itself.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let Standing::Failed(Some(reason)) = self.standing else {
            return None;
        };
        let Attempts { failed, last } = self.attempts;
        let wait: Duration = reason.retry_after(failed.saturating_sub(1))?;
        last?.checked_add(wait).ok()
    }
}

// === impl Standing ===

impl Standing {
    fn of(protocol: &Protocol, owner: Owner) -> Self {
        match owner {
            Owner::New => Self::Done,
            Owner::Migration => Self::Active,
            Owner::Undecided => Self::Pending,
            Owner::Legacy => match &protocol.failed {
                Some(reason) => Self::Failed(reason.parse().ok()),
                None => Self::Pending,
            },
        }
    }
}

// === impl Attempts ===

impl Attempts {
    /// What a hosted cluster says. What nobody of us wrote counts as none.
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

    /// One more, at this time.
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

    fn standing(annotations: &[(&str, &str)], evidence: ObservedGroups) -> Standing {
        let metadata = metadata("one", annotations);
        let verdict = evaluate(&protocol(&metadata), evidence);
        Member::new(Id::of(&metadata), &metadata, verdict).standing
    }

    /// M09: all combinations of the annotations, with all evidence, have one standing each.
    #[test]
    fn m09_every_combination_of_annotations_has_one_standing_by_evidence() {
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
            for evidence in [Nothing, Standard, Private, Both] {
                let found = standing(&chosen, evidence);
                let expected = match (locked, evidence) {
                    (true, _) => Standing::Active,
                    (false, Private) => Standing::Done,
                    (false, Both) => Standing::Pending,
                    (false, Standard) if failed => Standing::Failed(Some(Reason::Conflict)),
                    (false, Standard) => Standing::Pending,
                    // Without objects, the marks are all there is; contradictory ones mean nothing.
                    (false, Nothing) => match bits & 3 {
                        2 if failed => Standing::Failed(Some(Reason::Conflict)),
                        2 => Standing::Pending,
                        0 if failed => Standing::Failed(Some(Reason::Conflict)),
                        _ => Standing::Done,
                    },
                };
                assert_eq!(found, expected, "{chosen:?} {evidence:?}");
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
    fn a_failure_is_due_when_time_may_have_mended_it() {
        let at = "1@2030-01-31T12:00:00Z";
        let later = "2@2030-01-31T12:00:00Z";
        for (reason, attempts, due) in [
            ("conflict", at, Some("2030-01-31T12:01:00Z")),
            ("conflict", later, Some("2030-01-31T12:02:00Z")),
            ("conflict", "9@2030-01-31T12:00:00Z", None),
            ("preflight-failed", at, None),
            ("somebody-elses", at, None),
            ("conflict", "", None),
        ] {
            let annotations = [
                (SCOPE, "legacy"),
                (MIGRATION_FAILED, reason),
                (MIGRATION_ATTEMPTS, attempts),
            ];
            let metadata = metadata("one", &annotations);
            let verdict = evaluate(&protocol(&metadata), ObservedGroups::Standard);
            let member = Member::new(Id::of(&metadata), &metadata, verdict);
            let due: Option<Timestamp> = due.map(|time| time.parse().unwrap());
            assert_eq!(member.due(), due, "{reason} {attempts}");
        }
    }

    /// T01: nothing of a cluster without a namespace of its own is moved, whatever its annotations say.
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
            for evidence in ObservedGroups::ALL {
                let verdict = evaluate(&protocol(&metadata), evidence);
                let member = Member::new(Id::of(&metadata), &metadata, verdict).refused();
                assert!(!member.is_sure, "{annotations:?}");
                assert_ne!(member.standing, Standing::Active, "{annotations:?}");
            }
        }
    }
}
