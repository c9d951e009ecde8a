//! What is written to the status of a GCPPrivateServiceConnect. Pure.

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::GcpPrivateServiceConnectStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};
use support::conditions::with;

use super::dns::Zones;
use crate::private_link::problem::Problem;

/// Reasons of conditions.
pub(super) const ERROR: &str = "GCPError";
pub(super) const ADDRESS: &str = "IPReservationFailed";
pub(super) const ENDPOINT: &str = "PSCEndpointCreationFailed";
const SUCCESS: &str = "GCPSuccess";
/// The condition of names, which the HostedCluster does not have.
const DNS: &str = "GCPDNSAvailable";
/// What is made, and who makes it, in messages.
const WHAT: &str = "endpoint of Private Service Connect";
const IDENTITY: &str =
    "service account spec.platform.gcp.workloadIdentity.serviceAccountsEmails.controlPlane";

/// What has become of the endpoint, and then of its names.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The address.
    pub(super) endpoint: Result<String, Problem>,
    /// `None` if they have not been looked at.
    pub(super) zones: Option<Result<Zones, Problem>>,
}

// === impl Outcome ===

impl Outcome {
    /// The endpoint could not be made, or deleted.
    pub(super) fn failed(problem: Problem) -> Self {
        Self {
            endpoint: Err(problem),
            zones: None,
        }
    }

    /// Why it is not as it is to be.
    pub(super) fn problem(&self) -> Option<&Problem> {
        let zones = self.zones.as_ref().and_then(|it| it.as_ref().err());
        self.endpoint.as_ref().err().or(zones)
    }
}

/// The change of the status, if there is one. Fields of the hypershift-operator are left out.
pub(super) fn patch(
    before: &GcpPrivateServiceConnectStatus,
    after: &GcpPrivateServiceConnectStatus,
) -> Option<Value> {
    (after != before).then(|| {
        json!({ "status": {
            "endpointIP": after.endpoint_ip,
            "dnsZones": after.dns_zones,
            "conditions": after.conditions,
        } })
    })
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &GcpPrivateServiceConnectStatus,
    outcome: &Outcome,
    generation: Option<i64>,
    now: Timestamp,
) -> GcpPrivateServiceConnectStatus {
    let mut after = before.clone();
    let condition = |about: &str, problem: Option<&Problem>, message: String| {
        let (status, reason) = match problem {
            None => ("True", SUCCESS),
            Some(problem) => ("False", problem.reason),
        };
        Condition {
            type_: about.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: problem.map_or(message, |it| it.message(WHAT, IDENTITY)),
            observed_generation: generation,
            last_transition_time: Time(now),
        }
    };
    let mut message = String::new();
    if let Ok(address) = &outcome.endpoint {
        after.endpoint_ip = Some(address.clone());
        message = format!("the endpoint with address {address} is connected");
    }
    let endpoint = ClusterCondition::GcpEndpointAvailable.as_str();
    let problem = outcome.endpoint.as_ref().err();
    after.conditions = with(&after.conditions, condition(endpoint, problem, message));
    if let Some(zones) = &outcome.zones {
        if let Ok(zones) = zones {
            after.dns_zones.clone_from(&zones.zones);
        }
        let message = "the names lead to the endpoint".to_owned();
        let dns = condition(DNS, zones.as_ref().err(), message);
        after.conditions = with(&after.conditions, dns);
    }
    after
}
