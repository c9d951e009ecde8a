//! Whether machines find their configuration, and have found it.

use api::annotations::node_pool::IGNITION_REACHED;
use api::conditions::{PoolCondition, Status, status};
use api::hypershift::v1beta1::node_pool::UpgradeType;
use k8s_openapi::api::core::v1::Secret;

use super::{Blocked, Evaluation};
use crate::node_pool::conditions::Conditions;
use crate::node_pool::facts::Facts;

pub(super) fn endpoint(
    facts: &Facts,
    _: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::IgnitionEndpointAvailable;
    let missing = if facts.ignition_endpoint().is_none() {
        Some((
            "IgnitionEndpointMissing",
            "Waiting for the HostedCluster to report its ignition endpoint",
        ))
    } else if facts.ignition_ca.is_none() {
        Some((
            "IgnitionCACertMissing",
            "Waiting for the ignition certificate authority of the control plane",
        ))
    } else {
        None
    };
    if let Some((reason, message)) = missing {
        conditions.set(about, Status::False, reason, message);
        return Err(Blocked::Waiting);
    }
    conditions.clear(about);
    Ok(())
}

/// What the ignition server reports about the payload of the desired configuration.
#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
pub(super) fn payload(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ValidGeneratedPayload;
    let Some(secret) = token(facts, found) else {
        conditions.set(
            about,
            Status::Unknown,
            "StatusUnknown",
            "Waiting for the ignition token",
        );
        return Ok(());
    };
    let (reason, message) = (text(secret, "reason"), text(secret, "message"));
    match reason.as_str() {
        "" => conditions.set(
            about,
            Status::Unknown,
            "StatusUnknown",
            "Waiting for the ignition server to render the configuration",
        ),
        "AsExpected" => conditions.good(about, message),
        _ => conditions.set(about, Status::False, reason, message),
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of checks")]
pub(super) fn reached(
    facts: &Facts,
    found: &mut Evaluation,
    conditions: &mut Conditions,
) -> Result<(), Blocked> {
    let about = PoolCondition::ReachedIgnitionEndpoint;
    // Nodes that are upgraded in place do not fetch later configurations from the endpoint.
    let was_reached = status(conditions.list(), about) == Status::True;
    if was_reached && facts.upgrade_type() == UpgradeType::InPlace {
        conditions.good(about, "");
        return Ok(());
    }
    let annotations = token(facts, found).and_then(|it| it.metadata.annotations.as_ref());
    match annotations {
        None => conditions.set(
            about,
            Status::False,
            "NotFound",
            "Waiting for the ignition token",
        ),
        Some(annotations) if IGNITION_REACHED.is_true(annotations) => conditions.good(about, ""),
        Some(_) => conditions.set(
            about,
            Status::False,
            "IgnitionNotReached",
            "Waiting for the first machine to fetch the configuration",
        ),
    }
    Ok(())
}

fn token<'a>(facts: &'a Facts, found: &Evaluation) -> Option<&'a Secret> {
    facts.token(&found.hashes.as_ref()?.with_version)
}

fn text(secret: &Secret, key: &str) -> String {
    let value = secret.data.as_ref().and_then(|it| it.get(key));
    value
        .map(|it| String::from_utf8_lossy(&it.0).into_owned())
        .unwrap_or_default()
}
