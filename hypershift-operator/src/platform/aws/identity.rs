//! Whether AWS still accepts the tokens of a hosted cluster: without them, its controllers delete nothing.

use api::conditions::{ClusterCondition, ReadCondition as _, Status, find};
use api::hypershift::v1beta1::HostedCluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The conditions that are false if AWS does not accept them.
const CONDITIONS: [ClusterCondition; 2] = [
    ClusterCondition::ValidOidcConfiguration,
    ClusterCondition::ValidAwsIdentityProvider,
];

/// Whether AWS is known not to accept them. Where it is not known, the controllers may still be able to clean up.
pub(super) fn is_invalid(cluster: &HostedCluster) -> bool {
    let status = cluster.status.as_ref();
    let conditions = status.map(|it| it.conditions.as_slice());
    CONDITIONS
        .iter()
        .any(|about| is_false(conditions.unwrap_or_default(), *about))
}

fn is_false(conditions: &[Condition], about: ClusterCondition) -> bool {
    find(conditions, about).is_some_and(|it| it.status() == Status::False)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn one_false_condition_makes_the_identity_invalid() {
        for (oidc, provider, expected) in [
            (Some("True"), Some("True"), false),
            (Some("False"), Some("True"), true),
            (Some("True"), Some("False"), true),
            (Some("Unknown"), Some("Unknown"), false),
            (Some("Unknown"), Some("False"), true),
            (Some("True"), None, false),
            (None, None, false),
        ] {
            let condition = |about: ClusterCondition, status: Option<&str>| {
                let status = status?;
                Some(json!({
                    "type": about.as_str(), "status": status, "reason": "r", "message": "",
                    "lastTransitionTime": "2030-01-31T12:00:00Z",
                }))
            };
            let [first, second] = CONDITIONS;
            let conditions = [condition(first, oidc), condition(second, provider)];
            let conditions: Vec<_> = conditions.into_iter().flatten().collect();
            let mut cluster = fixture::hosted_cluster("aws");
            let status = json!({ "conditions": conditions });
            cluster.status = serde_json::from_value(status).unwrap();
            assert_eq!(is_invalid(&cluster), expected, "{oidc:?} {provider:?}");
        }
    }
}
