//! The headline conditions: whether the cluster can be used, whether it changes, and whether something is amiss.

use api::annotations::cluster::DISABLE_IGNITION_SERVER;
use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};

use super::conditions::Told;
use super::{Outcome, control_plane_conditions};
use crate::hosted_cluster::names::{CAPI_PROVIDER, CLUSTER_API, CONTROL_PLANE_OPERATOR};
use crate::hosted_cluster::validate::{Gate, Verdict};

/// The Deployment that new machines get their configuration from.
const IGNITION_SERVER: &str = "ignition-server";

/// `Available`: what the control plane says, and while it says nothing, why.
pub(super) fn available(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::Available;
    let facts = outcome.facts;
    let told = find(
        control_plane_conditions(facts.control_plane.as_ref()),
        about,
    );
    if let Some(told) = told {
        let status = Told::new(about, told.status(), &told.reason, &told.message);
        if told.status() == Status::True || !told.message.is_empty() {
            return status;
        }
    }
    let waiting = CommonReason::WaitingForAvailable.as_str();
    let (reason, message) = match hindrance(outcome) {
        Some(hindrance) => hindrance,
        None if facts.control_plane.is_none() => {
            (waiting, "the control plane is being made".to_owned())
        }
        None if !facts.is_available(CONTROL_PLANE_OPERATOR) => (
            waiting,
            format!("the Deployment {CONTROL_PLANE_OPERATOR} is not available yet"),
        ),
        None => (
            waiting,
            "the control plane has not said anything yet".to_owned(),
        ),
    };
    Told::new(about, Status::False, reason, message)
}

/// `Progressing`: until what is asked for is what runs.
pub(super) fn progressing(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::Progressing;
    if let Gate::Shut(message) = &outcome.verdicts.gate {
        return Told::new(
            about,
            Status::False,
            CommonReason::Blocked.as_str(),
            message,
        );
    }
    if let Some((_, message)) = hindrance(outcome) {
        return Told::new(
            about,
            Status::False,
            CommonReason::Blocked.as_str(),
            message,
        );
    }
    match change(outcome) {
        Some(message) => Told::new(about, Status::True, "Progressing", message),
        None => Told::expected(about, Status::False),
    }
}

/// `Degraded`: what the control plane says, and what of this operator's own Deployments does not run.
pub(super) fn degraded(outcome: &Outcome<'_>) -> Told {
    let about = ClusterCondition::Degraded;
    let facts = outcome.facts;
    let told = find(
        control_plane_conditions(facts.control_plane.as_ref()),
        about,
    );
    let told = told.filter(|it| it.status() == Status::True);
    let mut problems: Vec<String> = told.map(|it| it.message.clone()).into_iter().collect();
    let ours = [CONTROL_PLANE_OPERATOR, CLUSTER_API, CAPI_PROVIDER];
    let down = ours
        .iter()
        .filter(|name| facts.deployments.contains_key(**name) && !facts.is_available(name));
    problems.extend(down.map(|name| format!("the Deployment {name} is not available")));
    if problems.is_empty() {
        return Told::expected(about, Status::False);
    }
    Told::new(
        about,
        Status::True,
        "UnavailableReplicas",
        problems.join("; "),
    )
}

/// `IgnitionEndpointAvailable`.
pub(super) fn ignition(outcome: &Outcome<'_>) -> Option<Told> {
    let about = ClusterCondition::IgnitionEndpointAvailable;
    let facts = outcome.facts;
    if DISABLE_IGNITION_SERVER.is_set(facts.annotations()) {
        return None;
    }
    if facts.is_available(IGNITION_SERVER) && facts.ignition.is_some() {
        return Some(Told::expected(about, Status::True));
    }
    let message = match (
        &facts.ignition,
        facts.deployments.contains_key(IGNITION_SERVER),
    ) {
        (_, false) => format!("the Deployment {IGNITION_SERVER} is not there yet"),
        (None, true) => "the address of the ignition server is not known yet".to_owned(),
        (Some(_), true) => format!("the Deployment {IGNITION_SERVER} is not available"),
    };
    let reason = CommonReason::WaitingForAvailable.as_str();
    Some(Told::new(about, Status::False, reason, message))
}

/// What somebody has to change first.
fn hindrance(outcome: &Outcome<'_>) -> Option<(&'static str, String)> {
    let verdicts = outcome.verdicts;
    let all = [
        &verdicts.configuration,
        &verdicts.supported,
        &verdicts.release,
    ];
    all.into_iter().find_map(|verdict| match verdict {
        Verdict::Bad { reason, message } => Some((*reason, message.clone())),
        Verdict::Good => None,
    })
}

/// What is different from what is asked for.
fn change(outcome: &Outcome<'_>) -> Option<String> {
    let facts = outcome.facts;
    let Some(control_plane) = &facts.control_plane else {
        return Some("the control plane is being made".to_owned());
    };
    let wanted = &facts.cluster.spec.release.image;
    let status = control_plane.status.as_ref();
    let newest = status.and_then(|it| it.version_status.as_ref()?.history.first());
    let digest = facts
        .release
        .read()
        .map(|release| release.digest.as_str())
        .unwrap_or_default();
    match newest {
        Some(newest) if newest.image == *wanted || is_digest_of(&newest.image, digest) => {
            (newest.state != "Completed").then(|| format!("{wanted} is being rolled out"))
        }
        Some(_) | None => Some(format!("{wanted} is being rolled out")),
    }
}

fn is_digest_of(image: &str, digest: &str) -> bool {
    !digest.is_empty() && image.ends_with(digest)
}
