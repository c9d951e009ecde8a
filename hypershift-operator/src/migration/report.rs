//! Reports the progress of a migration: condition of the HostedCluster, Events, log.

use api::conditions::ClusterCondition;
use jiff::Timestamp;
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType};
use migration::failure::Reason;
use migration::groups::Direction;
use migration::journal::Failure;
use migration::phase::Phase;
use migration::progress::Progress;
use serde_json::{Value, json};
use support::error::chain;

use crate::cluster_ref::{Id, resource};
use crate::context::Context;
use crate::names::SCOPE_FIELD_MANAGER;

/// Log messages that alerts match.
const STARTED: &str = "Starting migration for HostedCluster";
const COMPLETED: &str = "Migration completed successfully";
const FAILED: &str = "Migration failed, rolling back";
/// The longest note of an Event.
const NOTE: usize = 1000;

/// Reason and message of the condition during a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConditionMessage {
    reason: String,
    message: String,
}

// === impl ConditionMessage ===

impl ConditionMessage {
    /// Progress of a phase.
    pub(super) fn phase(progress: &Progress, waits: Option<&str>) -> Self {
        Self {
            reason: progress.phase.name().to_owned(),
            message: with(progress.message.clone(), waits),
        }
    }

    /// A migration that is being rolled back.
    pub(super) fn back(progress: &Progress, failure: &Failure, waits: Option<&str>) -> Self {
        let text = format!("{}; {}", failure.message, progress.message);
        Self {
            reason: camel(failure.reason),
            message: with(text, waits),
        }
    }

    /// Whether both are about the same phase or failure.
    pub(super) fn is_about_the_same(&self, other: &Self) -> bool {
        self.reason == other.reason
    }

    /// One that needs user action.
    pub(super) fn blocked(phase: Phase, for_: &str) -> Self {
        Self {
            reason: phase.name().to_owned(),
            message: format!("committed, but completion is blocked: {for_}"),
        }
    }
}

fn with(mut text: String, waits: Option<&str>) -> String {
    if let Some(waits) = waits {
        text.push_str(": ");
        text.push_str(waits);
    }
    text
}

/// A failure reason as a condition reason: `quiesce-timeout` is `QuiesceTimeout`.
pub(super) fn camel(reason: Reason) -> String {
    let words = reason.name().split('-');
    let words = words.map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    });
    words.collect()
}

/// Updates the condition. A failed update does not stop the migration.
pub(super) async fn condition(ctx: &Context, id: &Id, line: &ConditionMessage) {
    let api = ctx.hosted_clusters(id);
    let written = async {
        let Some(cluster) = api.get_opt(&id.name).await? else {
            return Ok(());
        };
        let Some(object) = object(&cluster, line) else {
            return Ok(());
        };
        let written =
            support::apply::status(&api, &cluster.metadata, object, SCOPE_FIELD_MANAGER).await;
        written.map(drop)
    };
    if let Err(error) = written.await {
        tracing::debug!(
            namespace = id.namespace,
            name = id.name,
            error = chain(&error),
            "Failed to update the migration condition"
        );
    }
}

/// The status to apply; `None` if it is unchanged.
fn object(cluster: &DynamicObject, line: &ConditionMessage) -> Option<Value> {
    let about = ClusterCondition::PrivateCapiTypes.as_str();
    let conditions = cluster.data.pointer("/status/conditions")?.as_array();
    let found = conditions.and_then(|all| all.iter().find(|one| one["type"] == about));
    let is_same = |found: &Value| {
        found["status"] == "Unknown"
            && found["reason"] == line.reason.as_str()
            && found["message"] == line.message.as_str()
    };
    if found.is_some_and(is_same) {
        return None;
    }
    let since = found
        .filter(|found| found["status"] == "Unknown")
        .and_then(|found| found["lastTransitionTime"].as_str());
    let since = since.map_or_else(|| format!("{:.0}", Timestamp::now()), str::to_owned);
    let resource = resource();
    Some(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "status": { "conditions": [{
            "type": about,
            "status": "Unknown",
            "reason": line.reason,
            "message": line.message,
            "lastTransitionTime": since,
        }]},
    }))
}

/// A migration begins.
pub(super) async fn started(ctx: &Context, id: &Id, direction: Direction, epoch: i32) {
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        ?direction,
        epoch,
        "{STARTED}"
    );
    let to = to(direction);
    event(
        ctx,
        id,
        EventType::Normal,
        "MigrationStarted",
        &format!("{STARTED}: to {to} types"),
    )
    .await;
}

/// It cannot begin yet. Repeated Events are counted in one object.
pub(super) async fn waiting(ctx: &Context, id: &Id, for_: &str) {
    event(ctx, id, EventType::Normal, "MigrationWaiting", for_).await;
}

/// It is complete.
pub(super) async fn completed(ctx: &Context, id: &Id, direction: Direction, seconds: u64) {
    tracing::info!(
        namespace = id.namespace,
        name = id.name,
        ?direction,
        seconds,
        "{COMPLETED}"
    );
    let to = to(direction);
    let note = format!("{COMPLETED}: on {to} types after {seconds} s");
    event(ctx, id, EventType::Normal, "MigrationCompleted", &note).await;
}

/// It failed, and is or was rolled back.
pub(super) async fn failed(ctx: &Context, id: &Id, failure: &Failure) {
    let Failure { reason, message } = failure;
    tracing::warn!(
        namespace = id.namespace,
        name = id.name,
        reason = reason.name(),
        error = message,
        "{FAILED}"
    );
    let note = format!("{FAILED}: {reason}: {message}");
    event(ctx, id, EventType::Warning, &camel(*reason), &note).await;
}

/// It was rolled back.
pub(super) async fn rolled_back(ctx: &Context, id: &Id, failure: &Failure) {
    let note = format!("Migration rolled back ({failure}): the cluster is on its previous types");
    event(ctx, id, EventType::Normal, "MigrationRolledBack", &note).await;
}

fn to(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "private",
        Direction::Reverse => "standard",
    }
}

/// Sends an Event. A failure is ignored.
async fn event(ctx: &Context, id: &Id, type_: EventType, reason: &str, note: &str) {
    let Ok(Some(cluster)) = ctx.hosted_clusters(id).get_opt(&id.name).await else {
        return;
    };
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note.chars().take(NOTE).collect()),
        action: "Migrate".to_owned(),
        secondary: None,
    };
    let regarding = cluster.object_ref(&resource());
    // The condition has the same information.
    let _ = ctx.recorder.publish(&event, &regarding).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(conditions: &Value) -> DynamicObject {
        let object =
            json!({ "metadata": { "name": "one" }, "status": { "conditions": conditions } });
        serde_json::from_value(object).unwrap()
    }

    fn progress(phase: Phase, message: &str) -> Progress {
        Progress {
            phase,
            done: 0,
            total: 0,
            message: message.to_owned(),
        }
    }

    #[test]
    fn progress_messages_have_counts() {
        let copied = progress(Phase::Copy, "copied 340 of 512 objects");
        let line = ConditionMessage::phase(&copied, None);
        assert_eq!(line.reason, "Copy");
        assert_eq!(line.message, "copied 340 of 512 objects");
        let stopping = progress(Phase::Quiesce, "stopping");
        let line = ConditionMessage::phase(&stopping, Some("pod p on n"));
        assert_eq!(line.message, "stopping: pod p on n");
        let failure = Failure::new(Reason::QuiesceTimeout, "pod p stays");
        let line = ConditionMessage::back(&stopping, &failure, None);
        assert_eq!(line.reason, "QuiesceTimeout");
        assert_eq!(line.message, "pod p stays; stopping");
    }

    #[test]
    fn failure_reasons_are_camel_case() {
        let names = Reason::ALL.map(camel);
        for name in &names {
            let mut letters = name.chars();
            assert!(letters.next().unwrap().is_ascii_uppercase(), "{name}");
            assert!(letters.all(|it| it.is_ascii_alphabetic()), "{name}");
        }
        assert_eq!(camel(Reason::QuiesceTimeout), "QuiesceTimeout");
    }

    #[test]
    fn an_unchanged_condition_is_not_written_again() {
        let line = ConditionMessage::phase(&progress(Phase::Lock, "locked"), None);
        let is_condition_due = cluster(&json!([]));
        let reported = object(&is_condition_due, &line).unwrap();
        let reported = cluster(&reported["status"]["conditions"]);
        assert_eq!(object(&reported, &line), None);
        let next = object(
            &reported,
            &ConditionMessage::phase(&progress(Phase::Pause, "paused"), None),
        )
        .unwrap();
        assert_eq!(next["status"]["conditions"][0]["reason"], "Pause");
    }
}
