//! Events on changes of a hosted cluster that somebody has to know: pure, but for the sending.
//!
//! A condition is told when it turns, and not while it stays as it is: a cluster that waits sends nothing.

use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::runtime::events::{Event, EventType};
use serde_json::Value;
use support::error::chain;

use crate::context::Context;

/// What an Event may say.
const LONGEST_NOTE: usize = 1000;
/// What is being done when it is sent.
const ACTION: &str = "Reconcile";

/// When a condition is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Whenever it is bad: somebody has to change something.
    Bad,
    /// When it was good before: until then it only takes its time.
    Lost,
}

/// Conditions that are told of, what each says of a cluster that is well, and when it is told.
const TOLD: [(ClusterCondition, Status, When); 17] = [
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

/// The Events that are due after a status was written in place of another.
pub(crate) fn due(old: &[Condition], new: &Value) -> Vec<Event> {
    let told = TOLD.iter();
    told.filter_map(|(about, good, when)| event(*about, *good, *when, old, new))
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

/// Whether the cluster was available before: what was bad then was told.
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

/// Sends what is due. An Event that cannot be sent holds nothing up: the condition says the same.
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
    let regarding = cluster.object_ref(&crate::hosted_cluster::resource());
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
    fn what_turns_is_told_once() {
        let release = "ValidReleaseImage";
        for (about, was, is, expected) in [
            // Somebody has to change something, from the first moment on.
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
            // What takes its time is not told, and what is lost is.
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
            // It is nobody's business.
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
    fn a_note_says_what_and_why_and_is_cut_where_a_character_ends() {
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
