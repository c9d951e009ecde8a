//! What an AWSEndpointService says, and what is written to its status. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use api::conditions::ClusterCondition;
use api::hypershift::v1beta1::{AwsEndpointService, AwsEndpointServiceStatus, HostedControlPlane};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::endpoint::Progress;
use super::plan::{Link, Problem};

/// The change of the status, if there is one. Fields of the hypershift-operator are left out.
pub(super) fn patch(
    before: &AwsEndpointServiceStatus,
    after: &AwsEndpointServiceStatus,
) -> Option<Value> {
    (after != before).then(|| {
        json!({ "status": {
            "endpointID": after.endpoint_id,
            "dnsNames": after.dns_names,
            "dnsZoneID": after.dns_zone_id,
            "securityGroupID": after.security_group_id,
            "conditions": after.conditions,
        } })
    })
}

/// The AWSEndpointService of an object.
pub(super) fn link(live: &AwsEndpointService) -> Link {
    let status = live.status.clone().unwrap_or_default();
    Link {
        name: live.name_any(),
        service: status.endpoint_service_name.clone().unwrap_or_default(),
        subnets: live.spec.subnet_ids.clone(),
        status,
    }
}

/// A hash of what is read. Conditions and names that this controller writes are not.
pub(super) fn digest(hcp: &HostedControlPlane, live: &AwsEndpointService) -> u64 {
    let (spec, status) = (&hcp.spec, live.status.as_ref());
    let read = json!([
        spec.platform.aws,
        spec.services,
        spec.networking,
        spec.infra_id,
        live.metadata.uid,
        live.metadata.deletion_timestamp,
        live.spec.subnet_ids,
        status.map(|it| (&it.endpoint_service_name, &it.endpoint_id)),
    ]);
    let mut hasher = DefaultHasher::new();
    read.to_string().hash(&mut hasher);
    hasher.finish()
}

/// The status after a pass. Pure.
pub(super) fn status(
    before: &AwsEndpointServiceStatus,
    made: &Result<Progress, Problem>,
    generation: Option<i64>,
    now: Timestamp,
) -> AwsEndpointServiceStatus {
    let (after, status, reason, message) = match made {
        // It is not complete yet.
        Ok(Progress::Record(after)) => return after.clone(),
        // Nothing is wrong, only slow.
        Err(problem) if problem.is_throttled() => return before.clone(),
        Ok(Progress::Done(after)) => {
            let id = after.endpoint_id.as_deref().unwrap_or_default();
            let message = format!("VPC endpoint {id} is available");
            (after.clone(), "True", "AWSSuccess", message)
        }
        Err(problem) => (before.clone(), "False", "AWSError", problem.message()),
    };
    let condition = Condition {
        type_: ClusterCondition::AwsEndpointAvailable.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    };
    AwsEndpointServiceStatus {
        conditions: support::conditions::with(&before.conditions, condition),
        ..after
    }
}
