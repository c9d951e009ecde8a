//! What is written to the status of a GCPPrivateServiceConnect. Pure.

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::GcpPrivateServiceConnectStatus;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::conditions::with;

use super::dns::Zones;
use crate::private_link::outcome::{self, Words};
use crate::private_link::problem::Problem;

/// Reasons of conditions.
pub(super) const ERROR: &str = "GCPError";
pub(super) const ADDRESS: &str = "IPReservationFailed";
pub(super) const ENDPOINT: &str = "PSCEndpointCreationFailed";
/// The condition of names, which the HostedCluster does not have.
const DNS: &str = "GCPDNSAvailable";
const WORDS: Words = Words {
    success: "GCPSuccess",
    what: "endpoint of Private Service Connect",
    advice: "Check the permissions of service account \
             spec.platform.gcp.workloadIdentity.serviceAccountsEmails.controlPlane, and the limits of the account; the log of \
             the control-plane-operator has the details",
};

/// What has become of the address of the endpoint, and then of its names.
pub(super) type Outcome = outcome::Outcome<String, Zones>;

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
        WORDS.condition(about, problem, message, (generation, now))
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
