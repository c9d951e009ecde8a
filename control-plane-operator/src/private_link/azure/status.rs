//! What is written to the status of an AzurePrivateLinkService. Pure.

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::AzurePrivateLinkServiceStatus;
use jiff::Timestamp;
use serde_json::{Value, json};
use support::conditions::{with, with_summary};

use super::dns::Zones;
use super::endpoint::Made;
use crate::private_link::outcome::{self, Words};
use crate::private_link::problem::Problem;

/// Reasons of conditions.
pub(super) const ERROR: &str = "AzureError";
pub(super) const NOT_APPROVED: &str = "PrivateEndpointConnectionNotApproved";
const WORDS: Words = Words {
    success: "AzureSuccess",
    what: "private link",
    advice: "Check the permissions of identity \
             spec.platform.azure.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator, and the limits of the \
             account; the log of the control-plane-operator has the details",
};
/// The conditions of which `AzurePrivateLinkServiceAvailable` is the summary.
const PARTS: [ClusterCondition; 4] = [
    ClusterCondition::AzureInternalLoadBalancerAvailable,
    ClusterCondition::AzurePlsCreated,
    ClusterCondition::AzurePrivateEndpointAvailable,
    ClusterCondition::AzurePrivateDnsAvailable,
];

/// What has become of the private endpoint, and then of its names.
pub(super) type Outcome = outcome::Outcome<Made, Zones>;

/// The change of the status, if there is one. Fields of the hypershift-operator are left out.
pub(super) fn patch(
    before: &AzurePrivateLinkServiceStatus,
    after: &AzurePrivateLinkServiceStatus,
) -> Option<Value> {
    (after != before).then(|| {
        json!({ "status": {
            "privateEndpointID": after.private_endpoint_id,
            "privateEndpointIP": after.private_endpoint_ip,
            "privateDNSZoneID": after.private_dns_zone_id,
            "dnsZoneName": after.dns_zone_name,
            "baseDomainDNSZoneID": after.base_domain_dns_zone_id,
            "conditions": after.conditions,
        } })
    })
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &AzurePrivateLinkServiceStatus,
    outcome: &Outcome,
    generation: Option<i64>,
    now: Timestamp,
) -> AzurePrivateLinkServiceStatus {
    let mut after = before.clone();
    let condition = |about: ClusterCondition, problem: Option<&Problem>, message: String| {
        WORDS.condition(about.as_str(), problem, message, (generation, now))
    };
    let [_, _, endpoint, dns] = PARTS;
    let message = match &outcome.endpoint {
        Ok(made) => {
            after.private_endpoint_id = Some(made.id.clone());
            after.private_endpoint_ip = Some(made.address.clone());
            format!(
                "private endpoint with address {} is connected",
                made.address
            )
        }
        Err(_) => String::new(),
    };
    let problem = outcome.endpoint.as_ref().err();
    after.conditions = with(&after.conditions, condition(endpoint, problem, message));
    if let Some(zones) = &outcome.zones {
        let message = zones.as_ref().map(|it| published(&mut after, it));
        let problem = zones.as_ref().err();
        let condition = condition(dns, problem, message.unwrap_or_default());
        after.conditions = with(&after.conditions, condition);
    }
    let about = ClusterCondition::AzurePrivateLinkServiceAvailable;
    let summary = condition(about, None, "the private link is available".to_owned());
    after.conditions = with_summary(
        &after.conditions,
        &PARTS.map(ClusterCondition::as_str),
        summary,
    );
    after
}

/// Records the zones, and says what has become of them.
fn published(after: &mut AzurePrivateLinkServiceStatus, zones: &Zones) -> String {
    if let Some((id, name)) = &zones.own {
        after.private_dns_zone_id = Some(id.clone());
        after.dns_zone_name = Some(name.clone());
    }
    after.base_domain_dns_zone_id.clone_from(&zones.shared);
    if zones.is_linked_elsewhere {
        return "the names lead to the private endpoint; the network of the cluster is linked to another private DNS zone of \
                the base domain, whose records are not managed"
            .to_owned();
    }
    "the names lead to the private endpoint".to_owned()
}
