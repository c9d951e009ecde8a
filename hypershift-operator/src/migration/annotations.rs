//! The annotations of a HostedCluster that record its migration: each transition is one write.

use std::collections::BTreeMap;

use api::annotations::{
    MIGRATION_ACKNOWLEDGED, MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE,
    MIGRATION_HOLD, MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, PRIVATE_CAPI_TYPES, Protocol,
    ROLLBACK_REQUESTED, SCOPE,
};
use api::group::CapiTypes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use migration::failure::Reason;
use serde_json::json;

use super::candidate::Attempts;
use crate::cluster_ref::{Id, protocol};
use crate::context::Context;
use crate::error::Error;
use crate::handover::FIELD_MANAGER;

/// How often a transition is retried after a conflict.
const ATTEMPTS: usize = 5;
/// The longest message that is kept on the object.
const MESSAGE: usize = 800;

/// Annotations to be set, or removed.
pub(super) type Changes = BTreeMap<&'static str, Option<String>>;

/// A change of the annotations of the HostedCluster by its migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transition {
    /// Only the migration writes from now on.
    Lock,
    /// The cluster uses these types from now on; there is no rollback after this.
    Commit(CapiTypes),
    /// The migration is complete.
    Finish(CapiTypes),
    /// The migration failed and was rolled back.
    GiveUp(Reason, String, Attempts),
    /// A migration to standard types failed and was rolled back.
    GiveUpReverse(Reason, String),
}

// === impl Transition ===

impl Transition {
    /// Whether the transition is possible from this state.
    pub(super) fn is_possible(&self, found: &Protocol) -> bool {
        match self {
            // The lock may have been removed by another client: the failure is recorded anyway.
            Self::Lock | Self::GiveUp(..) | Self::GiveUpReverse(..) => true,
            Self::Commit(_) | Self::Finish(_) => found.in_progress,
        }
    }

    /// Whether the transition is complete; `rollback` is the value of the rollback annotation.
    pub(super) fn is_done(&self, found: &Protocol, rollback: Option<&str>) -> bool {
        match self {
            Self::Lock => found.in_progress,
            Self::Commit(types) => is_on(found, *types),
            Self::Finish(types) => is_on(found, *types) && !found.in_progress,
            Self::GiveUp(reason, ..) => {
                !found.in_progress && found.failed.as_deref() == Some(reason.name())
            }
            // A rollback can fail before the lock: the request stays until the failure is recorded.
            Self::GiveUpReverse(..) => !found.in_progress && rollback != Some(ROLLBACK_REQUESTED),
        }
    }

    /// The annotations to write.
    pub(super) fn changes(&self) -> Changes {
        let on = || Some("true".to_owned());
        let short = |message: &str| message.chars().take(MESSAGE).collect::<String>();
        let changes: Vec<(&'static str, Option<String>)> = match self {
            Self::Lock => vec![
                (MIGRATION_IN_PROGRESS, on()),
                (MIGRATION_ACKNOWLEDGED, None),
                (MIGRATION_FAILED, None),
                (MIGRATION_FAILURE_MESSAGE, None),
            ],
            Self::Commit(CapiTypes::Private) => vec![(PRIVATE_CAPI_TYPES, on()), (SCOPE, None)],
            // Without the hold it would be migrated again at once.
            Self::Commit(CapiTypes::Standard) => vec![
                (PRIVATE_CAPI_TYPES, None),
                (SCOPE, Some("legacy".to_owned())),
                (MIGRATION_HOLD, on()),
            ],
            Self::Finish(_) => vec![
                (MIGRATION_IN_PROGRESS, None),
                (MIGRATION_ACKNOWLEDGED, None),
                (MIGRATION_ATTEMPTS, None),
                (MIGRATION_ROLLBACK, None),
            ],
            Self::GiveUp(reason, message, attempts) => vec![
                (MIGRATION_IN_PROGRESS, None),
                (MIGRATION_ACKNOWLEDGED, None),
                (MIGRATION_FAILED, Some(reason.name().to_owned())),
                (MIGRATION_FAILURE_MESSAGE, Some(short(message))),
                (MIGRATION_ATTEMPTS, Some(attempts.text())),
            ],
            Self::GiveUpReverse(reason, message) => vec![
                (MIGRATION_IN_PROGRESS, None),
                (MIGRATION_ACKNOWLEDGED, None),
                (
                    MIGRATION_ROLLBACK,
                    Some(short(&format!("{reason}: {message}"))),
                ),
            ],
        };
        changes.into_iter().collect()
    }
}

fn is_on(found: &Protocol, types: CapiTypes) -> bool {
    match types {
        CapiTypes::Private => found.private && !found.legacy,
        CapiTypes::Standard => found.legacy && !found.private,
    }
}

/// The outcome of a transition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Made {
    /// It is complete, now or before.
    Yes,
    /// The transition is not possible: another client changed the annotations.
    Tampered(Protocol),
    /// The cluster does not exist.
    Gone,
}

/// Applies a transition: one write, only if the object has not changed since it was read.
pub(super) async fn apply_transition(
    ctx: &Context,
    id: &Id,
    what: &Transition,
) -> Result<Made, Error> {
    for _ in 0..ATTEMPTS {
        let Some(metadata) = read(ctx, id).await? else {
            return Ok(Made::Gone);
        };
        let found = protocol(&metadata);
        let annotations = metadata.annotations.as_ref();
        let rollback = annotations.and_then(|it| it.get(MIGRATION_ROLLBACK));
        if what.is_done(&found, rollback.map(String::as_str)) {
            return Ok(Made::Yes);
        }
        if !what.is_possible(&found) {
            return Ok(Made::Tampered(found));
        }
        match write(ctx, id, &metadata, &what.changes()).await {
            Ok(()) => return Ok(Made::Yes),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Contended {
        object: id.to_string(),
    })
}

/// The current metadata of the cluster.
pub(super) async fn read(ctx: &Context, id: &Id) -> Result<Option<ObjectMeta>, Error> {
    let found = ctx.hosted_clusters(id).get_metadata_opt(&id.name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })?;
    Ok(found.map(|found| found.metadata))
}

/// Sets and removes annotations, if the object has not changed since it was read.
pub(super) async fn write(
    ctx: &Context,
    id: &Id,
    read: &ObjectMeta,
    changes: &Changes,
) -> Result<(), Error> {
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    let patch = json!({ "metadata": {
        "uid": read.uid,
        "resourceVersion": read.resource_version,
        "annotations": changes,
    }});
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let written = api
        .patch_metadata(&id.name, &params, &Patch::Merge(&patch))
        .await;
    written.map(drop).map_err(|source| Error::Annotate {
        object: id.to_string(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(
        annotations: &BTreeMap<String, String>,
        what: &Transition,
    ) -> BTreeMap<String, String> {
        let mut after = annotations.clone();
        for (key, value) in what.changes() {
            match value {
                Some(value) => after.insert(key.to_owned(), value),
                None => after.remove(key),
            };
        }
        after
    }

    fn failed(reason: Reason) -> Transition {
        Transition::GiveUp(reason, "why".to_owned(), Attempts::default())
    }

    fn legacy() -> BTreeMap<String, String> {
        BTreeMap::from([
            (SCOPE.to_owned(), "legacy".to_owned()),
            ("example.com/own".to_owned(), "kept".to_owned()),
        ])
    }

    #[test]
    fn a_round_trip_leaves_only_the_hold_annotation() {
        let mut changes = legacy();
        for _ in 0..20 {
            for what in [Transition::Lock, failed(Reason::Conflict), Transition::Lock] {
                changes = after(&changes, &what);
            }
            for what in [
                Transition::Commit(CapiTypes::Private),
                Transition::Finish(CapiTypes::Private),
            ] {
                changes = after(&changes, &what);
            }
            assert!(Protocol::read(&changes).private && !Protocol::read(&changes).legacy);
            changes.insert(MIGRATION_ROLLBACK.to_owned(), ROLLBACK_REQUESTED.to_owned());
            for what in [
                Transition::Lock,
                Transition::Commit(CapiTypes::Standard),
                Transition::Finish(CapiTypes::Standard),
            ] {
                changes = after(&changes, &what);
            }
            assert_eq!(changes.remove(MIGRATION_HOLD).as_deref(), Some("true"));
            assert_eq!(changes, legacy());
        }
    }

    #[test]
    fn a_completed_transition_is_recognized() {
        for what in [
            Transition::Lock,
            Transition::Commit(CapiTypes::Private),
            Transition::Finish(CapiTypes::Private),
            failed(Reason::QuiesceTimeout),
        ] {
            let mut changes = after(&legacy(), &Transition::Lock);
            if matches!(what, Transition::Finish(_)) {
                changes = after(&changes, &Transition::Commit(CapiTypes::Private));
            }
            let before = Protocol::read(&changes);
            assert!(what.is_possible(&before), "{what:?}");
            let is_done = what.is_done(&before, None);
            assert_eq!(is_done, what == Transition::Lock, "{what:?}");
            let made = Protocol::read(&after(&changes, &what));
            assert!(what.is_done(&made, None), "{what:?} {made:?}");
        }
    }

    #[test]
    fn a_rollback_refused_before_the_lock_is_reported() {
        let found = Protocol {
            private: true,
            ..Protocol::default()
        };
        let what = Transition::GiveUpReverse(Reason::PreflightFailed, "why".to_owned());
        assert!(!what.is_done(&found, Some(ROLLBACK_REQUESTED)));
        let reported = what.changes()[MIGRATION_ROLLBACK].clone();
        assert!(what.is_done(&found, reported.as_deref()), "{reported:?}");
    }

    #[test]
    fn nothing_is_committed_without_the_lock() {
        let found = Protocol::read(&legacy());
        for what in [Transition::Lock, failed(Reason::Conflict)] {
            assert!(what.is_possible(&found), "{what:?}");
        }
        for what in [
            Transition::Commit(CapiTypes::Private),
            Transition::Finish(CapiTypes::Private),
        ] {
            assert!(!what.is_possible(&found), "{what:?}");
        }
    }

    #[test]
    fn failure_messages_are_stored_truncated() {
        let long = "x".repeat(5000);
        let what = Transition::GiveUp(Reason::Conflict, long, Attempts::default());
        let message = what.changes()[MIGRATION_FAILURE_MESSAGE].clone();
        assert_eq!(message.map(|it| it.len()), Some(MESSAGE));
    }
}
