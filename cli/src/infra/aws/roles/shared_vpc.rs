//! Roles for a VPC of another account: what the cluster's components do there, they do in roles of that account. Pure.

use serde_json::{Value, json};

use super::{Statement, any};

/// What the operator of control planes may do in the account of the cluster.
pub(super) const CONTROL_PLANE_STATEMENTS: &[Statement] = &[any(&[(
    "ec2",
    &[
        "DescribeVpcEndpoints",
        "CreateTags",
        "CreateSecurityGroup",
        "AuthorizeSecurityGroupIngress",
        "AuthorizeSecurityGroupEgress",
        "DeleteSecurityGroup",
        "RevokeSecurityGroupIngress",
        "RevokeSecurityGroupEgress",
        "DescribeSecurityGroups",
        "DescribeVpcs",
        "DescribeSubnets",
    ],
)])];
/// What changes records in private zones needs.
const ZONES: [&str; 12] = [
    "route53:ListHostedZones",
    "route53:ListHostedZonesByName",
    "route53:ChangeTagsForResource",
    "route53:GetAccountLimit",
    "route53:GetChange",
    "route53:GetHostedZone",
    "route53:ListTagsForResource",
    "route53:UpdateHostedZoneComment",
    "route53:ChangeResourceRecordSets",
    "route53:ListResourceRecordSets",
    "tag:GetResources",
    "tag:UntagResources",
];
/// What creates and deletes VPC endpoints needs.
const ENDPOINTS: [&str; 14] = [
    "ec2:CreateVpcEndpoint",
    "ec2:DescribeVpcEndpoints",
    "ec2:ModifyVpcEndpoint",
    "ec2:DeleteVpcEndpoints",
    "ec2:CreateTags",
    "ec2:CreateSecurityGroup",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:DeleteSecurityGroup",
    "ec2:RevokeSecurityGroupIngress",
    "ec2:RevokeSecurityGroupEgress",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeVpcs",
    "ec2:DescribeSubnets",
];

/// A role that components of the cluster assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedRole {
    /// Changes records of the private zones.
    Zones,
    /// Creates VPC endpoints.
    Endpoints,
}

// === impl SharedRole ===

impl SharedRole {
    /// The end of its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zones => "shared-vpc-route53",
            Self::Endpoints => "shared-vpc-endpoint",
        }
    }

    /// Who may assume it: the roles with these ARNs.
    pub(crate) fn trust(principals: &[&str]) -> Value {
        json!({
            "Version": "2012-10-17",
            "Statement": [{
                "Effect": "Allow",
                "Principal": { "AWS": principals },
                "Action": "sts:AssumeRole",
            }],
        })
    }

    /// What it may do.
    pub(crate) fn policy(self) -> Value {
        let actions = match self {
            Self::Zones => &ZONES[..],
            Self::Endpoints => &ENDPOINTS[..],
        };
        json!({
            "Version": "2012-10-17",
            "Statement": [{ "Effect": "Allow", "Action": actions, "Resource": "*" }],
        })
    }

    /// The policy of a role that assumes others, and its name.
    pub(crate) fn assume(role: &str, arns: &[&str]) -> (String, Value) {
        let policy = json!({
            "Version": "2012-10-17",
            "Statement": [{ "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": arns }],
        });
        (format!("{role}-assume"), policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_roles_are_for_the_roles_of_the_cluster() {
        let trust = SharedRole::trust(&["arn:ingress", "arn:control-plane"]);
        let statement = &trust["Statement"][0];
        let expected = json!(["arn:ingress", "arn:control-plane"]);
        assert_eq!(statement["Principal"]["AWS"], expected);
        assert_eq!(statement["Action"], "sts:AssumeRole");
        let actions = |role: SharedRole| {
            let policy = role.policy();
            let actions = policy["Statement"][0]["Action"].as_array().unwrap().clone();
            let of = |prefix: &str| {
                let mut actions = actions.iter();
                actions.all(|it| it.as_str().unwrap().starts_with(prefix))
            };
            (actions.len(), of("ec2:"))
        };
        assert_eq!(actions(SharedRole::Zones), (12, false));
        assert_eq!(actions(SharedRole::Endpoints), (14, true));
        let (name, policy) = SharedRole::assume("a-x1-openshift-ingress", &["arn:zones"]);
        assert_eq!(name, "a-x1-openshift-ingress-assume");
        assert_eq!(policy["Statement"][0]["Resource"], json!(["arn:zones"]));
    }
}
