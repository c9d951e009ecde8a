//! The role with which this command creates and destroys clusters on AWS.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::call::{Call, Calls};
use super::executor::Executor;
use super::named_role::{NamedRole, document};
use crate::Usage;

const PURPOSE: &str = "cli";
/// The longest name of a role.
const LONGEST: usize = 64;

/// Identifier, service and actions of a statement.
type Statement = (&'static str, &'static str, &'static [&'static str]);

/// What the role may do with all resources.
#[rustfmt::skip]
const STATEMENTS: [Statement; 5] = [
    ("EC2", "ec2", &[
        "AllocateAddress", "AssociateDhcpOptions", "AssociateRouteTable", "AttachInternetGateway", "CreateDhcpOptions",
        "CreateInternetGateway", "CreateNatGateway", "CreateRoute", "CreateRouteTable", "CreateSubnet", "CreateTags",
        "CreateVpc", "CreateVpcEndpoint", "DeleteDhcpOptions", "DeleteInternetGateway", "DeleteKeyPair",
        "DeleteLaunchTemplate", "DeleteNatGateway", "DeleteRoute", "DeleteRouteTable", "DeleteSecurityGroup",
        "DeleteSubnet", "DeleteVpc", "DeleteVpcEndpoints", "DeleteVpcEndpointServiceConfigurations",
        "DescribeAddresses", "DescribeAvailabilityZones", "DescribeDhcpOptions", "DescribeInstances",
        "DescribeInternetGateways", "DescribeKeyPairs", "DescribeLaunchTemplates", "DescribeNatGateways",
        "DescribeRouteTables", "DescribeSecurityGroups", "DescribeSubnets", "DescribeVpcEndpointConnections",
        "DescribeVpcEndpoints", "DescribeVpcEndpointServiceConfigurations", "DescribeVpcs", "DetachInternetGateway",
        "DisassociateRouteTable", "ModifyVpcAttribute", "ModifyVpcEndpoint", "RejectVpcEndpointConnections",
        "ReleaseAddress", "ReplaceRoute", "ReplaceRouteTableAssociation", "RevokeSecurityGroupEgress",
        "RevokeSecurityGroupIngress", "TerminateInstances",
    ]),
    ("ELB", "elasticloadbalancing", &[
        "DeleteLoadBalancer", "DescribeLoadBalancers", "DescribeTargetGroups", "DeleteTargetGroup",
    ]),
    ("IAM", "iam", &[
        "AddRoleToInstanceProfile", "CreateInstanceProfile", "CreateOpenIDConnectProvider", "CreateRole",
        "DeleteInstanceProfile", "DeleteOpenIDConnectProvider", "DeleteRole", "DeleteRolePolicy", "DetachRolePolicy",
        "GetInstanceProfile", "GetOpenIDConnectProvider", "GetRole", "GetRolePolicy", "ListAttachedRolePolicies",
        "ListOpenIDConnectProviders", "ListRolePolicies", "PutRolePolicy", "RemoveRoleFromInstanceProfile",
        "TagInstanceProfile", "TagOpenIDConnectProvider", "TagRole", "UpdateAssumeRolePolicy",
    ]),
    ("Route53", "route53", &[
        "AssociateVPCWithHostedZone", "ChangeResourceRecordSets", "ChangeTagsForResource", "CreateHostedZone",
        "DeleteHostedZone", "ListHostedZones", "ListHostedZonesByName", "ListHostedZonesByVPC",
        "ListResourceRecordSets", "ListTagsForResource",
    ]),
    ("S3", "s3", &[
        "CreateBucket", "DeleteBucket", "DeleteObject", "GetBucketTagging", "ListAllMyBuckets", "ListBucket",
        "PutBucketPolicy", "PutBucketPublicAccessBlock", "PutBucketTagging", "PutObject",
    ]),
];

/// Who makes the calls, by the ARN that the token service reports.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Caller<'a> {
    /// A user: the ARN can be trusted.
    User(&'a str),
    /// A session of a role. Its ARN is valid for this session only, so the role is trusted.
    Role(&'a str),
}

// === impl Caller ===

impl<'a> Caller<'a> {
    fn of(arn: &'a str) -> anyhow::Result<Self> {
        let resource = arn.splitn(6, ':').nth(5).unwrap_or_default();
        let mut parts = resource.split('/');
        match (parts.next(), parts.next()) {
            (Some("user" | "federated-user"), Some(_)) => Ok(Self::User(arn)),
            (Some("assumed-role"), Some(role)) if !role.is_empty() => Ok(Self::Role(role)),
            (Some("root"), None) => bail!(
                "the credentials are those of the account's root user, and a role that trusts it trusts the whole account: \
                 use those of a user or of a role"
            ),
            _ => bail!("the token service reports {arn:?}, which is neither a user nor a role"),
        }
    }
}

/// Checks the name of the role.
pub(crate) fn check_name(name: &str) -> Result<(), Usage> {
    let is_of_role = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(is_of_role) {
        return Err(Usage::new(&format!(
            "--name {name:?}: use letters, digits and +=,.@_- , at most {LONGEST}"
        )));
    }
    Ok(())
}

/// The role, which one principal may assume.
fn role(name: &str, principal: &str) -> NamedRole {
    let trust = json!({
        "Effect": "Allow",
        "Principal": { "AWS": principal },
        "Action": "sts:AssumeRole",
    });
    NamedRole {
        name: name.to_owned(),
        purpose: PURPOSE,
        trust: document(&[trust]),
        policy: policy(),
    }
}

fn policy() -> Value {
    let statements = STATEMENTS.iter().map(|(id, service, actions)| {
        let actions = actions.iter().map(|action| format!("{service}:{action}"));
        json!({
            "Sid": id,
            "Effect": "Allow",
            "Action": actions.collect::<Vec<_>>(),
            "Resource": "*",
        })
    });
    let mut statements: Vec<_> = statements.collect();
    // Nodes get the role of workers, and no other.
    statements.push(json!({
        "Sid": "IAMPassRole",
        "Effect": "Allow",
        "Action": "iam:PassRole",
        "Resource": "arn:*:iam::*:role/*-worker-role",
        "Condition": { "ForAnyValue:StringEquals": {
            "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"],
        } },
    }));
    document(&statements)
}

impl<C: Calls> Executor<'_, C> {
    /// Creates the role for the caller, or brings it up to date; returns its ARN.
    pub(crate) async fn create_cli_role(&self, name: &str) -> anyhow::Result<String> {
        let principal = self.principal().await?;
        self.say(&format!("role {name} is for {principal}"));
        self.ensure_role(&role(name, &principal)).await
    }

    /// Says what there is of it, and creates nothing.
    pub(crate) async fn report_cli_role(&self, name: &str) -> anyhow::Result<()> {
        let principal = self.principal().await?;
        self.say(&format!("role {name} would be for {principal}"));
        self.report_role(&role(name, &principal)).await
    }

    /// The ARN of the caller, as policies name it.
    async fn principal(&self) -> anyhow::Result<String> {
        let response = self.call(&Call::sts("GetCallerIdentity")).await;
        let response = response.context("failed to find out who makes the calls")?;
        let arn = response.text_at("GetCallerIdentityResult/Arn");
        match Caller::of(arn)? {
            Caller::User(arn) => Ok(arn.to_owned()),
            Caller::Role(name) => {
                // The ARN of the session does not have the role's path.
                let found = self.find_role(name).await?;
                let found = found.map(|role| role.text_at("Arn").to_owned());
                found.with_context(|| {
                    format!("role {name}, with which the calls are made, is not in the account")
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_users_or_roles() {
        let user = "arn:aws:iam::1:user/team/a";
        let federated = "arn:aws:sts::1:federated-user/a";
        for (arn, expected) in [
            (user, Some(Caller::User(user))),
            (federated, Some(Caller::User(federated))),
            (
                "arn:aws:sts::1:assumed-role/admin/me@example.com",
                Some(Caller::Role("admin")),
            ),
            ("arn:aws:iam::1:root", None),
            ("arn:aws:sts::1:assumed-role/", None),
            ("", None),
        ] {
            assert_eq!(Caller::of(arn).ok(), expected, "{arn}");
        }
        let error = Caller::of("arn:aws:iam::1:root").unwrap_err().to_string();
        assert!(error.contains("the whole account"), "{error}");
    }

    #[test]
    fn names_are_those_of_iam() {
        for (name, expected) in [
            ("hypershift-cli-role", true),
            (&"x".repeat(LONGEST), true),
            (&"x".repeat(LONGEST + 1), false),
            ("", false),
            ("a/b", false),
        ] {
            assert_eq!(check_name(name).is_ok(), expected, "{name}");
        }
    }

    /// IAM counts the characters without white space.
    #[test]
    fn the_policy_fits_into_a_role() {
        let length = policy().to_string().len();
        assert!(length < 10_240, "{length}");
    }
}
