//! AutoNode: whether a cluster has Karpenter, and what is known of it.

use std::collections::BTreeMap;

use api::conditions::{ClusterCondition, find};
use api::hypershift::v1beta1::ControlPlaneComponentStatus;
use api::hypershift::v1beta1::HostedCluster;
use api::hypershift::v1beta1::auto_node::{
    AutoNode as Settings, KarpenterAwsConfig, KarpenterPlatform, Provisioner,
};
use api::hypershift::v1beta1::platform::PlatformType;

use crate::names;

/// The reason of the condition while something is added or removed.
pub(crate) const PROGRESSING: &str = "AutoNodeProgressing";
/// Its reason when all is removed.
pub(crate) const NOT_CONFIGURED: &str = "AutoNodeNotConfigured";
/// The components of AutoNode, in the order in which they are rolled out.
pub(crate) const COMPONENTS: [&str; 2] = [names::KARPENTER_OPERATOR, names::KARPENTER];

/// What is known of Karpenter in a control plane that has it, or that has not got rid of it yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct AutoNode {
    /// The statuses of the components that exist.
    pub(crate) components: BTreeMap<&'static str, ControlPlaneComponentStatus>,
    /// Whether there is the kubeconfig by which the operator of Karpenter acts in the hosted cluster.
    pub(crate) has_kubeconfig: bool,
    /// Why something of it is not known.
    pub(crate) problem: Option<String>,
}

/// The settings of Karpenter on AWS, if the cluster has it.
pub(crate) fn karpenter(cluster: &HostedCluster) -> Option<&KarpenterAwsConfig> {
    of_spec(cluster.spec.auto_node.as_ref(), cluster.spec.platform.type_)
}

/// The same of the fields of a specification.
pub(crate) fn of_spec(
    auto_node: Option<&Settings>,
    platform: PlatformType,
) -> Option<&KarpenterAwsConfig> {
    let provisioner = &auto_node?.provisioner_config;
    let Provisioner::Karpenter = provisioner.name;
    let karpenter = provisioner.karpenter.as_ref()?;
    let KarpenterPlatform::Aws = karpenter.platform;
    let aws = karpenter.aws.as_ref();
    aws.filter(|_| platform == PlatformType::Aws)
}

/// Whether the cluster had Karpenter, and its control plane may still have something of it.
pub(crate) fn may_remain(cluster: &HostedCluster) -> bool {
    let status = cluster.status.as_ref();
    let conditions = status.map(|it| it.conditions.as_slice());
    let condition = find(
        conditions.unwrap_or_default(),
        ClusterCondition::AutoNodeEnabled,
    );
    condition.is_some_and(|it| it.reason != NOT_CONFIGURED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::fixture;

    #[test]
    fn karpenter_is_on_where_a_cluster_on_aws_asks_for_it() {
        for (platform, has_auto_node, expected) in [
            ("aws", true, true),
            ("aws", false, false),
            ("agent", true, false),
            ("none", false, false),
        ] {
            let mut cluster = fixture::hosted_cluster(platform);
            if has_auto_node {
                fixture::with_auto_node(&mut cluster);
            }
            let found = karpenter(&cluster).map(|it| it.role_arn.as_str());
            let role = "arn:aws:iam::123456789012:role/karpenter";
            assert_eq!(found, expected.then_some(role), "{platform}");
        }
    }

    #[test]
    fn something_may_remain_until_the_condition_has_its_last_reason() {
        for (reason, expected) in [
            (None, false),
            (Some("AsExpected"), true),
            (Some(PROGRESSING), true),
            (Some("AutoNodeEvaluationFailed"), true),
            (Some(NOT_CONFIGURED), false),
        ] {
            let mut cluster = fixture::hosted_cluster("aws");
            let condition = reason.map(|reason| {
                json!({
                    "type": "AutoNodeEnabled", "status": "False", "reason": reason, "message": "",
                    "lastTransitionTime": "2030-01-31T12:00:00Z",
                })
            });
            let conditions: Vec<_> = condition.into_iter().collect();
            let status = json!({ "conditions": conditions });
            cluster.status = serde_json::from_value(status).unwrap();
            assert_eq!(may_remain(&cluster), expected, "{reason:?}");
        }
    }
}
