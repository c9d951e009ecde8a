//! Events for condition changes of a HostedCluster. Pure, except for creating them.
//!
//! An Event is sent when a condition changes, not while it stays the same.

use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType};
use serde_json::Value;
use support::error::chain;

use crate::context::Context;

/// The longest note of an Event.
const LONGEST_NOTE: usize = 1000;
/// The action of Events.
const ACTION: &str = "Reconcile";

/// When an Event is sent for a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Whenever it becomes unhealthy: a user has to act.
    Bad,
    /// When it was healthy before: until then it is only in progress.
    Lost,
}

/// Conditions with Events: the healthy status of each, and when an Event is sent.
const RULES: [(ClusterCondition, Status, When); 17] = [
    (ClusterCondition::Available, Status::True, When::Lost),
    (ClusterCondition::Degraded, Status::False, When::Lost),
    (ClusterCondition::EtcdAvailable, Status::True, When::Lost),
    (
        ClusterCondition::KubeApiServerAvailable,
        Status::True,
        When::Lost,
    ),
    (
        ClusterCondition::InfrastructureReady,
        Status::True,
        When::Lost,
    ),
    (
        ClusterCondition::IgnitionEndpointAvailable,
        Status::True,
        When::Lost,
    ),
    (
        ClusterCondition::DataPlaneConnectionAvailable,
        Status::True,
        When::Lost,
    ),
    (
        ClusterCondition::ReconciliationSucceeded,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::ReconciliationActive,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::ValidConfiguration,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::SupportedHostedCluster,
        Status::True,
        When::Bad,
    ),
    (ClusterCondition::ValidReleaseImage, Status::True, When::Bad),
    (ClusterCondition::ValidReleaseInfo, Status::True, When::Bad),
    (
        ClusterCondition::ValidHostedControlPlaneConfiguration,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::ValidIdpConfiguration,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::PlatformCredentialsFound,
        Status::True,
        When::Bad,
    ),
    (
        ClusterCondition::UnmanagedEtcdAvailable,
        Status::True,
        When::Bad,
    ),
];

/// The Events for the change from the old conditions to the new status.
pub(crate) fn due(old: &[Condition], new: &Value) -> Vec<Event> {
    let rules = RULES.iter();
    rules
        .filter_map(|(about, good, when)| event(*about, *good, *when, old, new))
        .collect()
}

fn event(
    about: ClusterCondition,
    good: Status,
    when: When,
    old: &[Condition],
    new: &Value,
) -> Option<Event> {
    let mut conditions = new["conditions"].as_array()?.iter();
    let new = conditions.find(|it| it["type"] == about.as_str())?;
    let text = |field: &str| new[field].as_str().unwrap_or_default();
    let before = find(old, about);
    let was_good = before.is_some_and(|it| it.status() == good);
    let was_bad = before.is_some_and(|it| is_bad(it.status(), good));
    let status = Status::read(text("status"));
    if is_bad(status, good) {
        let is_same = before.is_some_and(|it| it.status() == status && it.reason == text("reason"));
        let is_news = !is_same && (was_good || when == When::Bad);
        let note = format!("{about} is {}: {}", status.as_str(), text("message"));
        return is_news.then(|| made(EventType::Warning, text("reason"), &note));
    }
    let is_first = about == ClusterCondition::Available && !was_good;
    let is_over = was_bad && when == When::Bad || is_first || was_bad && lasted(old, about);
    let note = format!("{about} is {}", status.as_str());
    (status == good && is_over).then(|| made(EventType::Normal, about.as_str(), &note))
}

/// Whether the cluster was available before: Events for unhealthy conditions were sent then.
fn lasted(old: &[Condition], about: ClusterCondition) -> bool {
    about == ClusterCondition::Degraded
        || find(old, ClusterCondition::Available).is_some_and(|it| it.status() == Status::True)
}

fn is_bad(status: Status, good: Status) -> bool {
    status != good && status != Status::Unknown
}

fn made(type_: EventType, reason: &str, note: &str) -> Event {
    let end = note
        .char_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at < LONGEST_NOTE);
    let end = end.last().unwrap_or_default();
    let note = if note.len() > LONGEST_NOTE {
        format!("{}...", &note[..end])
    } else {
        note.to_owned()
    };
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: ACTION.to_owned(),
        secondary: None,
    }
}

/// Sends the Events. A failure is ignored: the condition has the same information.
pub(crate) async fn send(
    cluster: &api::hypershift::v1beta1::HostedCluster,
    new: &Value,
    ctx: &Context,
) {
    let old = cluster.status.as_ref();
    let old = old.map(|it| it.conditions.as_slice()).unwrap_or_default();
    let regarding = cluster.object_ref(&());
    for event in due(old, new) {
        publish(&event, &regarding, ctx).await;
    }
}

/// Sends a Warning Event about a HostedCluster that may not deserialize.
pub(crate) async fn warn(cluster: &DynamicObject, reason: &str, note: &str, ctx: &Context) {
    let regarding = cluster.object_ref(&crate::cluster_ref::resource());
    publish(&made(EventType::Warning, reason, note), &regarding, ctx).await;
}

async fn publish(event: &Event, regarding: &ObjectReference, ctx: &Context) {
    if let Err(error) = ctx.recorder.publish(event, regarding).await {
        ctx.metrics.error("event", "Unsent");
        let (reason, error) = (event.reason.as_str(), chain(&error));
        tracing::debug!(reason, error, "Failed to create Event");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new(about: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({ "conditions": [{ "type": about, "status": status, "reason": reason, "message": message }] })
    }

    fn old(about: &str, status: &str, reason: &str) -> Vec<Condition> {
        let mut condition = json!(new(about, status, reason, "")["conditions"][0]);
        condition["lastTransitionTime"] = json!("2026-01-01T00:00:00Z");
        vec![serde_json::from_value(condition).unwrap()]
    }

    /// Each row: a condition, what it was, what it is, and the reason of the Event.
    #[test]
    fn a_condition_change_sends_one_event() {
        let release = "ValidReleaseImage";
        for (about, was, is, expected) in [
            // A user has to act, even at the first status.
            (
                release,
                None,
                ("False", "InvalidImage"),
                Some("InvalidImage"),
            ),
            (
                release,
                Some(("True", "AsExpected")),
                ("False", "InvalidImage"),
                Some("InvalidImage"),
            ),
            (
                release,
                Some(("False", "InvalidImage")),
                ("False", "InvalidImage"),
                None,
            ),
            (
                release,
                Some(("False", "InvalidImage")),
                ("False", "SecretNotFound"),
                Some("SecretNotFound"),
            ),
            (
                release,
                Some(("False", "InvalidImage")),
                ("True", "AsExpected"),
                Some(release),
            ),
            (release, None, ("True", "AsExpected"), None),
            (release, None, ("Unknown", "StatusUnknown"), None),
            // No Event while it is in progress, one when it is lost.
            (
                "EtcdAvailable",
                None,
                ("False", "StatefulSetNotFound"),
                None,
            ),
            (
                "EtcdAvailable",
                Some(("True", "AsExpected")),
                ("False", "EtcdWaitingForQuorum"),
                Some("EtcdWaitingForQuorum"),
            ),
            (
                "Degraded",
                Some(("False", "AsExpected")),
                ("True", "UnavailableReplicas"),
                Some("UnavailableReplicas"),
            ),
            (
                "Degraded",
                Some(("True", "UnavailableReplicas")),
                ("False", "AsExpected"),
                Some("Degraded"),
            ),
            (
                "Available",
                Some(("False", "WaitingForAvailable")),
                ("True", "AsExpected"),
                Some("Available"),
            ),
            (
                "Available",
                Some(("True", "AsExpected")),
                ("True", "AsExpected"),
                None,
            ),
            // No Event is sent for it.
            (
                "ClusterVersionProgressing",
                Some(("True", "x")),
                ("False", "y"),
                None,
            ),
        ] {
            let before = was.map(|(status, reason)| old(about, status, reason));
            let events = due(
                &before.unwrap_or_default(),
                &new(about, is.0, is.1, "because"),
            );
            let reasons: Vec<_> = events.iter().map(|it| it.reason.as_str()).collect();
            assert_eq!(reasons.first().copied(), expected, "{about} {was:?} {is:?}");
            assert!(reasons.len() < 2);
        }
    }

    #[test]
    fn event_notes_are_truncated_at_character_boundaries() {
        let long = "ä".repeat(2000);
        let events = due(
            &[],
            &new("ValidConfiguration", "False", "InvalidConfiguration", &long),
        );
        let note = events[0].note.clone().unwrap();
        assert!(note.starts_with("ValidConfiguration is False: ä"), "{note}");
        assert!(note.len() <= 1024 && note.ends_with("..."));
        assert_eq!(events[0].type_, EventType::Warning);
    }
}
