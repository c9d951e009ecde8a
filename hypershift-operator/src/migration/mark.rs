//! The annotations by which a migration says what it does to a hosted cluster: each move is one write.

use std::collections::BTreeMap;

use api::annotations::{
    MIGRATION_ACKNOWLEDGED, MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE,
    MIGRATION_HOLD, MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, PRIVATE_CAPI_TYPES, Protocol,
    ROLLBACK_REQUESTED, SCOPE,
};
use api::group::Side;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use migration::failure::Reason;
use serde_json::json;

use super::candidate::Attempts;
use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{Id, protocol};

/// Field manager of the migration.
pub(super) const MANAGER: &str = "hypershift-operator-migration";
/// How often a move is decided anew because somebody else was writing.
const ATTEMPTS: usize = 5;
/// The longest message that is kept on the object.
const MESSAGE: usize = 800;

/// Annotations to be set, or removed.
pub(super) type Marks = BTreeMap<&'static str, Option<String>>;

/// What a migration does to the hosted cluster itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Move {
    /// Nobody but the migration writes from now on.
    Lock,
    /// The cluster is on that side from now on, and there is no way back.
    Commit(Side),
    /// The migration is complete.
    Finish(Side),
    /// The migration was undone, since it failed.
    GiveUp(Reason, String, Attempts),
    /// A migration to standard types was undone, since it failed.
    GiveUpReverse(Reason, String),
}

// === impl Move ===

impl Move {
    /// Whether the move can be made from this state.
    pub(super) fn is_possible(&self, found: &Protocol) -> bool {
        match self {
            // Somebody may have taken the lock away: that the migration failed is told all the same.
            Self::Lock | Self::GiveUp(..) | Self::GiveUpReverse(..) => true,
            Self::Commit(_) | Self::Finish(_) => found.in_progress,
        }
    }

    /// Whether the move is made already; `rollback` is what the annotation of the way back says.
    pub(super) fn is_made(&self, found: &Protocol, rollback: Option<&str>) -> bool {
        match self {
            Self::Lock => found.in_progress,
            Self::Commit(side) => is_on(found, *side),
            Self::Finish(side) => is_on(found, *side) && !found.in_progress,
            Self::GiveUp(reason, ..) => {
                !found.in_progress && found.failed.as_deref() == Some(reason.name())
            }
            // One that was never locked is given up, too, and is asked for as long as nobody has said so.
            Self::GiveUpReverse(..) => !found.in_progress && rollback != Some(ROLLBACK_REQUESTED),
        }
    }

    /// What is written.
    pub(super) fn marks(&self) -> Marks {
        let on = || Some("true".to_owned());
        let short = |message: &str| message.chars().take(MESSAGE).collect::<String>();
        let marks: Vec<(&'static str, Option<String>)> = match self {
            Self::Lock => vec![
                (MIGRATION_IN_PROGRESS, on()),
                (MIGRATION_ACKNOWLEDGED, None),
                (MIGRATION_FAILED, None),
                (MIGRATION_FAILURE_MESSAGE, None),
            ],
            Self::Commit(Side::Private) => vec![(PRIVATE_CAPI_TYPES, on()), (SCOPE, None)],
            // Otherwise it would be migrated again at once.
            Self::Commit(Side::Standard) => vec![
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
        marks.into_iter().collect()
    }
}

fn is_on(found: &Protocol, side: Side) -> bool {
    match side {
        Side::Private => found.private && !found.legacy,
        Side::Standard => found.legacy && !found.private,
    }
}

/// What became of a move.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Made {
    /// It is made, now or before.
    Yes,
    /// The cluster is not in a state from which it can be made: somebody has changed its annotations.
    Tampered(Protocol),
    /// The cluster is gone.
    Gone,
}

/// Makes a move: one write, only if the object is still the one that was looked at.
pub(super) async fn make(ctx: &Context, id: &Id, what: &Move) -> Result<Made, Error> {
    for _ in 0..ATTEMPTS {
        let Some(metadata) = read(ctx, id).await? else {
            return Ok(Made::Gone);
        };
        let found = protocol(&metadata);
        let annotations = metadata.annotations.as_ref();
        let rollback = annotations.and_then(|it| it.get(MIGRATION_ROLLBACK));
        if what.is_made(&found, rollback.map(String::as_str)) {
            return Ok(Made::Yes);
        }
        if !what.is_possible(&found) {
            return Ok(Made::Tampered(found));
        }
        match write(ctx, id, &metadata, &what.marks()).await {
            Ok(()) => return Ok(Made::Yes),
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Contended {
        object: id.to_string(),
    })
}

/// The cluster's metadata now.
pub(super) async fn read(ctx: &Context, id: &Id) -> Result<Option<ObjectMeta>, Error> {
    let found = ctx.hosted_clusters(id).get_metadata_opt(&id.name).await;
    let found = found.map_err(|source| Error::Read {
        what: format!("HostedCluster {id}"),
        source,
    })?;
    Ok(found.map(|found| found.metadata))
}

/// Sets and removes annotations, if the object is still as it was read.
pub(super) async fn write(
    ctx: &Context,
    id: &Id,
    read: &ObjectMeta,
    marks: &Marks,
) -> Result<(), Error> {
    let api: Api<DynamicObject> = ctx.hosted_clusters(id);
    let patch = json!({ "metadata": {
        "uid": read.uid,
        "resourceVersion": read.resource_version,
        "annotations": marks,
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let written = api
        .patch_metadata(&id.name, &params, &Patch::Merge(&patch))
        .await;
    written.map(drop).map_err(|source| Error::Mark {
        object: id.to_string(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(annotations: &BTreeMap<String, String>, what: &Move) -> BTreeMap<String, String> {
        let mut after = annotations.clone();
        for (key, value) in what.marks() {
            match value {
                Some(value) => after.insert(key.to_owned(), value),
                None => after.remove(key),
            };
        }
        after
    }

    fn failed(reason: Reason) -> Move {
        Move::GiveUp(reason, "why".to_owned(), Attempts::default())
    }

    fn legacy() -> BTreeMap<String, String> {
        BTreeMap::from([
            (SCOPE.to_owned(), "legacy".to_owned()),
            ("example.com/own".to_owned(), "kept".to_owned()),
        ])
    }

    #[test]
    fn m13_there_and_back_leaves_nothing_but_the_hold() {
        let mut marks = legacy();
        for _ in 0..20 {
            for what in [Move::Lock, failed(Reason::Conflict), Move::Lock] {
                marks = after(&marks, &what);
            }
            for what in [Move::Commit(Side::Private), Move::Finish(Side::Private)] {
                marks = after(&marks, &what);
            }
            assert!(Protocol::read(&marks).private && !Protocol::read(&marks).legacy);
            marks.insert(MIGRATION_ROLLBACK.to_owned(), ROLLBACK_REQUESTED.to_owned());
            for what in [
                Move::Lock,
                Move::Commit(Side::Standard),
                Move::Finish(Side::Standard),
            ] {
                marks = after(&marks, &what);
            }
            assert_eq!(marks.remove(MIGRATION_HOLD).as_deref(), Some("true"));
            assert_eq!(marks, legacy());
        }
    }

    #[test]
    fn a_move_is_recognised_when_it_is_made() {
        for what in [
            Move::Lock,
            Move::Commit(Side::Private),
            Move::Finish(Side::Private),
            failed(Reason::QuiesceTimeout),
        ] {
            let mut marks = after(&legacy(), &Move::Lock);
            if matches!(what, Move::Finish(_)) {
                marks = after(&marks, &Move::Commit(Side::Private));
            }
            let before = Protocol::read(&marks);
            assert!(what.is_possible(&before), "{what:?}");
            let is_made = what.is_made(&before, None);
            assert_eq!(is_made, what == Move::Lock, "{what:?}");
            let made = Protocol::read(&after(&marks, &what));
            assert!(what.is_made(&made, None), "{what:?} {made:?}");
        }
    }

    #[test]
    fn m12_a_way_back_that_is_refused_before_the_lock_is_told() {
        let found = Protocol {
            private: true,
            ..Protocol::default()
        };
        let what = Move::GiveUpReverse(Reason::PreflightFailed, "why".to_owned());
        assert!(!what.is_made(&found, Some(ROLLBACK_REQUESTED)));
        let told = what.marks()[MIGRATION_ROLLBACK].clone();
        assert!(what.is_made(&found, told.as_deref()), "{told:?}");
    }

    #[test]
    fn m09_without_the_lock_nothing_is_committed() {
        let found = Protocol::read(&legacy());
        for what in [Move::Lock, failed(Reason::Conflict)] {
            assert!(what.is_possible(&found), "{what:?}");
        }
        for what in [Move::Commit(Side::Private), Move::Finish(Side::Private)] {
            assert!(!what.is_possible(&found), "{what:?}");
        }
    }

    #[test]
    fn a_failure_is_kept_with_what_a_person_needs() {
        let long = "x".repeat(5000);
        let what = Move::GiveUp(Reason::Conflict, long, Attempts::default());
        let message = what.marks()[MIGRATION_FAILURE_MESSAGE].clone();
        assert_eq!(message.map(|it| it.len()), Some(MESSAGE));
    }
}
