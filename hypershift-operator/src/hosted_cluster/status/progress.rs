//! The summary conditions: `Available`, `Progressing` and `Degraded`, and the ignition endpoint.

use api::annotations::cluster::DISABLE_IGNITION_SERVER;
use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};

use super::conditions::ConditionUpdate;
use super::{Outcome, control_plane_conditions};
use crate::facts::Facts;
use crate::hosted_cluster::validate::{Finding, Gate};
use crate::names::{CAPI_PROVIDER, CLUSTER_API, CONTROL_PLANE_OPERATOR};

/// The Deployment that new machines get their configuration from.
const IGNITION_SERVER: &str = "ignition-server";

/// `Available`: the condition of the control plane; before it exists, the reason.
pub(super) fn available(outcome: &Outcome<'_>) -> ConditionUpdate {
    let about = ClusterCondition::Available;
    let facts = outcome.facts;
    let reported = find(
        control_plane_conditions(facts.control_plane.as_ref()),
        about,
    );
    if let Some(reported) = reported {
        let status = ConditionUpdate::new(
            about,
            reported.status(),
            &reported.reason,
            &reported.message,
        );
        if reported.status() == Status::True || !reported.message.is_empty() {
            return status;
        }
    }
    let waiting = CommonReason::WaitingForAvailable.as_str();
    let (reason, message) = match blocker(outcome) {
        Some(blocker) => blocker,
        None if facts.control_plane.is_none() => (waiting, "Creating the control plane".to_owned()),
        None if !facts.is_available(CONTROL_PLANE_OPERATOR) => (
            waiting,
            waiting_for_deployment(facts, CONTROL_PLANE_OPERATOR),
        ),
        None => (
            waiting,
            "Waiting for the control plane to report this condition".to_owned(),
        ),
    };
    ConditionUpdate::new(about, Status::False, reason, message)
}

/// `Progressing`: until the desired release runs.
pub(super) fn progressing(outcome: &Outcome<'_>) -> ConditionUpdate {
    let about = ClusterCondition::Progressing;
    if let Gate::Shut(message) = &outcome.findings.gate {
        return ConditionUpdate::new(
            about,
            Status::False,
            CommonReason::Blocked.as_str(),
            message,
        );
    }
    if let Some((_, message)) = blocker(outcome) {
        return ConditionUpdate::new(
            about,
            Status::False,
            CommonReason::Blocked.as_str(),
            message,
        );
    }
    match change(outcome) {
        Some(message) => ConditionUpdate::new(about, Status::True, "Progressing", message),
        None => ConditionUpdate::expected(about, Status::False),
    }
}

/// `Degraded`: the condition of the control plane, and unavailable Deployments of this operator.
pub(super) fn degraded(outcome: &Outcome<'_>) -> ConditionUpdate {
    let about = ClusterCondition::Degraded;
    let facts = outcome.facts;
    let reported = find(
        control_plane_conditions(facts.control_plane.as_ref()),
        about,
    );
    let reported = reported.filter(|it| it.status() == Status::True);
    let mut problems: Vec<String> = reported.map(|it| it.message.clone()).into_iter().collect();
    let ours = [CONTROL_PLANE_OPERATOR, CLUSTER_API, CAPI_PROVIDER];
    let down = ours
        .iter()
        .filter(|name| facts.deployments.contains_key(**name) && !facts.is_available(name));
    problems.extend(down.map(|name| waiting_for_deployment(facts, name)));
    if problems.is_empty() {
        return ConditionUpdate::expected(about, Status::False);
    }
    ConditionUpdate::new(
        about,
        Status::True,
        "UnavailableReplicas",
        problems.join("; "),
    )
}

/// `IgnitionEndpointAvailable`.
pub(super) fn ignition(outcome: &Outcome<'_>) -> Option<ConditionUpdate> {
    let about = ClusterCondition::IgnitionEndpointAvailable;
    let facts = outcome.facts;
    if DISABLE_IGNITION_SERVER.is_set(facts.annotations()) {
        return None;
    }
    if facts.is_available(IGNITION_SERVER) && facts.ignition.is_some() {
        return Some(ConditionUpdate::expected(about, Status::True));
    }
    let message = match (
        &facts.ignition,
        facts.deployments.contains_key(IGNITION_SERVER),
    ) {
        (_, false) => format!("Waiting for Deployment {IGNITION_SERVER} to be created"),
        (None, true) => "Waiting for the address of the ignition server".to_owned(),
        (Some(_), true) => waiting_for_deployment(facts, IGNITION_SERVER),
    };
    let reason = CommonReason::WaitingForAvailable.as_str();
    Some(ConditionUpdate::new(about, Status::False, reason, message))
}

/// The message about a Deployment that is not available, with its available and desired replicas.
fn waiting_for_deployment(facts: &Facts, name: &str) -> String {
    let deployment = facts.deployments.get(name);
    let replicas = deployment
        .and_then(|it| it.spec.as_ref()?.replicas)
        .unwrap_or(1);
    let available = deployment
        .and_then(|it| it.status.as_ref()?.available_replicas)
        .unwrap_or_default();
    format!("Waiting for Deployment {name} to become available ({available}/{replicas})")
}

/// The first finding that a user has to fix.
fn blocker(outcome: &Outcome<'_>) -> Option<(&'static str, String)> {
    let findings = outcome.findings;
    let all = [
        &findings.configuration,
        &findings.supported,
        &findings.release,
    ];
    all.into_iter().find_map(|finding| match finding {
        Finding::Bad { reason, message } => Some((*reason, message.clone())),
        Finding::Good => None,
    })
}

/// What differs from the desired state.
fn change(outcome: &Outcome<'_>) -> Option<String> {
    let facts = outcome.facts;
    let Some(control_plane) = &facts.control_plane else {
        return Some("Creating the control plane".to_owned());
    };
    let desired = &facts.cluster.spec.release.image;
    let status = control_plane.status.as_ref();
    let newest = status.and_then(|it| it.version_status.as_ref()?.history.first());
    let digest = facts
        .release
        .read()
        .map(|release| release.digest.as_str())
        .unwrap_or_default();
    match newest {
        Some(newest) if newest.image == *desired || is_digest_of(&newest.image, digest) => {
            (newest.state != "Completed").then(|| format!("Rolling out release {desired}"))
        }
        Some(_) | None => Some(format!("Rolling out release {desired}")),
    }
}

fn is_digest_of(image: &str, digest: &str) -> bool {
    !digest.is_empty() && image.ends_with(digest)
}
