//! The conditions of private links: those of all links of the cluster, together.

use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::platform::PlatformType;

use super::ConditionUpdate;
use crate::facts::Facts;
use crate::hosted_cluster::validate::has_private_links;

/// What is reported of the links of a cloud: what the control-plane-operator does, and what this operator does.
struct Reported {
    kind: &'static str,
    conditions: &'static [ClusterCondition],
    success: &'static str,
    failure: &'static str,
}

const AWS: Reported = Reported {
    kind: "AWSEndpointService",
    conditions: &[
        ClusterCondition::AwsEndpointAvailable,
        ClusterCondition::AwsEndpointServiceAvailable,
    ],
    success: "AWSSuccess",
    failure: "AWSError",
};
const AZURE: Reported = Reported {
    kind: "AzurePrivateLinkService",
    conditions: &[
        ClusterCondition::AzurePrivateLinkServiceAvailable,
        ClusterCondition::AzurePlsCreated,
        ClusterCondition::AzureInternalLoadBalancerAvailable,
        ClusterCondition::AzurePrivateEndpointAvailable,
        ClusterCondition::AzurePrivateDnsAvailable,
    ],
    success: "AzureSuccess",
    failure: "AzureError",
};
const GCP: Reported = Reported {
    kind: "GCPPrivateServiceConnect",
    conditions: &[
        ClusterCondition::GcpEndpointAvailable,
        ClusterCondition::GcpServiceAttachmentAvailable,
    ],
    success: "GCPSuccess",
    failure: "GCPError",
};

/// The conditions; none for a cluster without private links.
pub(super) fn conditions(facts: &Facts) -> Vec<ConditionUpdate> {
    if !has_private_links(facts) {
        return Vec::new();
    }
    let reported = match facts.cluster.spec.platform.type_ {
        PlatformType::Aws => AWS,
        // Without a link there is nothing to report: clusters of a managed service have none.
        PlatformType::Azure if !facts.private_links.is_empty() => AZURE,
        PlatformType::Gcp => GCP,
        PlatformType::Agent
        | PlatformType::Azure
        | PlatformType::IbmCloud
        | PlatformType::KubeVirt
        | PlatformType::None
        | PlatformType::OpenStack
        | PlatformType::PowerVs => return Vec::new(),
    };
    let all = reported.conditions.iter();
    all.map(|about| condition(facts, &reported, *about))
        .collect()
}

fn condition(facts: &Facts, reported: &Reported, about: ClusterCondition) -> ConditionUpdate {
    let links = facts.private_links.iter();
    let found: Vec<_> = links.filter_map(|it| find(it, about)).collect();
    if found.is_empty() {
        let reason = CommonReason::StatusUnknown.as_str();
        let message = format!("{} conditions not found", reported.kind);
        return ConditionUpdate::new(about, Status::Unknown, reason, message);
    }
    let failed = found.iter().filter(|it| it.status() == Status::False);
    let messages: Vec<_> = failed.map(|it| it.message.as_str()).collect();
    if messages.is_empty() {
        return ConditionUpdate::new(about, Status::True, reported.success, "All is well");
    }
    ConditionUpdate::new(about, Status::False, reported.failure, messages.join("; "))
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    fn link(conditions: &[(&str, &str, &str)]) -> Vec<Condition> {
        let conditions = conditions.iter().map(|(type_, status, message)| {
            serde_json::from_value(json!({
                "type": type_, "status": status, "reason": "r", "message": message,
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }))
            .unwrap()
        });
        conditions.collect()
    }

    #[test]
    fn conditions_of_all_links_are_reported_together() {
        let (service, endpoint) = ("AWSEndpointServiceAvailable", "AWSEndpointAvailable");
        let unknown = ("Unknown", "AWSEndpointService conditions not found");
        let well = ("True", "All is well");
        for (links, expected) in [
            (vec![], [unknown, unknown]),
            (vec![link(&[])], [unknown, unknown]),
            (vec![link(&[(service, "True", "a")])], [unknown, well]),
            (
                vec![
                    link(&[(service, "True", "a"), (endpoint, "False", "b")]),
                    link(&[(service, "True", "c"), (endpoint, "False", "d")]),
                ],
                [("False", "b; d"), well],
            ),
            (
                vec![
                    link(&[(service, "False", "a"), (endpoint, "True", "b")]),
                    link(&[(service, "True", "c")]),
                ],
                [well, ("False", "a")],
            ),
        ] {
            let mut cluster = fixture::hosted_cluster("aws");
            if let Some(aws) = &mut cluster.spec.platform.aws {
                aws.endpoint_access = AwsEndpointAccess::Private;
            }
            let mut facts = fixture::facts(cluster, CapiTypes::Private);
            facts.private_links = links;
            let found = conditions(&facts);
            let found: Vec<_> = found
                .iter()
                .map(|it| (it.status.as_str(), it.message.as_str()))
                .collect();
            assert_eq!(found, expected);
        }
        let public = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        assert_eq!(conditions(&public), []);
    }

    #[test]
    fn private_links_on_azure_have_five_conditions() {
        let mut cluster = fixture::hosted_cluster("azure");
        let azure = cluster.spec.platform.azure.as_mut().unwrap();
        azure.topology = serde_json::from_value(json!("Private")).unwrap();
        let private = json!({ "type": "PrivateLink", "privateLink": {} });
        azure.private = serde_json::from_value(private).unwrap();
        let mut facts = fixture::facts(cluster, CapiTypes::Private);
        assert_eq!(conditions(&facts), [], "no link");
        facts.private_links = vec![
            link(&[("AzurePLSCreated", "True", "a")]),
            link(&[("AzurePLSCreated", "False", "b")]),
        ];
        let found = conditions(&facts);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.about, it.status.as_str(), it.message.as_str()))
            .collect();
        let unknown = |type_: &'static str| {
            (
                type_,
                "Unknown",
                "AzurePrivateLinkService conditions not found",
            )
        };
        let expected = [
            unknown("AzurePrivateLinkServiceAvailable"),
            ("AzurePLSCreated", "False", "b"),
            unknown("AzureInternalLoadBalancerAvailable"),
            unknown("AzurePrivateEndpointAvailable"),
            unknown("AzurePrivateDNSAvailable"),
        ];
        assert_eq!(found, expected);
    }
}
