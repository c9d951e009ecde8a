//! The conditions of private links: those of all AWSEndpointServices of the cluster, together.

use api::conditions::{ClusterCondition, CommonReason, ReadCondition as _, Status, find};

use super::ConditionUpdate;
use crate::facts::Facts;
use crate::hosted_cluster::validate::private_access;

/// What the control-plane-operator reports, and what this operator does.
const REPORTED: [ClusterCondition; 2] = [
    ClusterCondition::AwsEndpointAvailable,
    ClusterCondition::AwsEndpointServiceAvailable,
];

/// The conditions; none for a public cluster.
pub(super) fn conditions(facts: &Facts) -> Vec<ConditionUpdate> {
    if private_access(facts).is_none() {
        return Vec::new();
    }
    REPORTED.map(|about| condition(facts, about)).into()
}

fn condition(facts: &Facts, about: ClusterCondition) -> ConditionUpdate {
    let links = facts.endpoint_services.iter();
    let statuses = links.filter_map(|it| it.status.as_ref());
    let found: Vec<_> = statuses
        .filter_map(|it| find(&it.conditions, about))
        .collect();
    if found.is_empty() {
        let reason = CommonReason::StatusUnknown.as_str();
        let message = "AWSEndpointService conditions not found";
        return ConditionUpdate::new(about, Status::Unknown, reason, message);
    }
    let failed = found.iter().filter(|it| it.status() == Status::False);
    let messages: Vec<_> = failed.map(|it| it.message.as_str()).collect();
    if messages.is_empty() {
        return ConditionUpdate::new(about, Status::True, "AWSSuccess", "All is well");
    }
    ConditionUpdate::new(about, Status::False, "AWSError", messages.join("; "))
}

#[cfg(test)]
mod tests {
    use api::group::CapiTypes;
    use api::hypershift::v1beta1::AwsEndpointService;
    use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    fn link(conditions: &[(&str, &str, &str)]) -> AwsEndpointService {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, message)| {
                json!({
                    "type": type_, "status": status, "reason": "r", "message": message,
                    "lastTransitionTime": "2030-01-01T00:00:00Z",
                })
            })
            .collect();
        serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "AWSEndpointService",
            "metadata": { "name": "private-router" },
            "spec": { "networkLoadBalancerName": "lb" },
            "status": { "conditions": conditions },
        }))
        .unwrap()
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
            facts.endpoint_services = links;
            let found = conditions(&facts);
            let statuses = [Status::True, Status::False, Status::Unknown];
            let names = ["True", "False", "Unknown"];
            let found: Vec<_> = found
                .iter()
                .map(|it| {
                    let at = statuses.iter().position(|status| *status == it.status);
                    (names[at.unwrap()], it.message.as_str())
                })
                .collect();
            assert_eq!(found, expected);
        }
        let public = fixture::facts(fixture::hosted_cluster("aws"), CapiTypes::Private);
        assert_eq!(conditions(&public), []);
    }
}
