//! What Karpenter may do: make instances with its tag, and change and end those that have it. Pure.

use serde_json::{Value, json};

use crate::infra::aws::scope::Scope;

/// The tag of what Karpenter makes.
const POOL: &str = "karpenter.sh/nodepool";
/// The tag of instance profiles that it makes.
const CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
/// What it makes in EC2.
const MADE: [&str; 6] = [
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
];
/// How it makes it.
const MAKES: [&str; 3] = ["RunInstances", "CreateFleet", "CreateLaunchTemplate"];

/// The policy of its role.
pub(super) fn policy(scope: &Scope) -> Value {
    let mut statements = machines(scope);
    statements.extend(reads(scope));
    statements.extend(profiles(scope));
    json!({ "Version": "2012-10-17", "Statement": statements })
}

/// Instances, and what belongs to them.
fn machines(scope: &Scope) -> Vec<Value> {
    let (partition, region) = (scope.partition(), &scope.region);
    let own = |kind: &str| format!("arn:{partition}:ec2:{region}:*:{kind}/*");
    let public = |kind: &str| format!("arn:{partition}:ec2:{region}::{kind}/*");
    let made = MADE.map(own);
    let runs = actions("ec2", &["RunInstances", "CreateFleet"]);
    vec![
        json!({
            "Sid": "AllowScopedEC2InstanceAccessActions",
            "Effect": "Allow",
            "Action": runs,
            "Resource": [public("image"), public("snapshot"), own("security-group"), own("subnet")],
        }),
        json!({
            "Sid": "AllowScopedEC2LaunchTemplateAccessActions",
            "Effect": "Allow",
            "Action": runs,
            "Resource": [own("launch-template")],
        }),
        json!({
            "Sid": "AllowScopedEC2InstanceActionsWithTags",
            "Effect": "Allow",
            "Action": actions("ec2", &MAKES),
            "Resource": made,
            "Condition": like(&requested(POOL)),
        }),
        json!({
            "Sid": "AllowScopedResourceCreationTagging",
            "Effect": "Allow",
            "Action": actions("ec2", &["CreateTags"]),
            "Resource": made,
            "Condition": {
                "StringEquals": { "ec2:CreateAction": MAKES },
                "StringLike": { requested(POOL): "*" },
            },
        }),
        json!({
            "Sid": "AllowScopedResourceTagging",
            "Effect": "Allow",
            "Action": actions("ec2", &["CreateTags"]),
            "Resource": [own("instance")],
            "Condition": like(&owned(POOL)),
        }),
        json!({
            "Sid": "AllowScopedDeletion",
            "Effect": "Allow",
            "Action": actions("ec2", &["TerminateInstances", "DeleteLaunchTemplate"]),
            "Resource": [own("instance"), own("launch-template")],
            "Condition": like(&owned(POOL)),
        }),
    ]
}

/// What it reads to choose among instances.
fn reads(scope: &Scope) -> Vec<Value> {
    let (partition, region) = (scope.partition(), &scope.region);
    let described = [
        "DescribeCapacityReservations",
        "DescribeImages",
        "DescribeInstances",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeLaunchTemplates",
        "DescribeSecurityGroups",
        "DescribeSpotPriceHistory",
        "DescribeSubnets",
    ];
    vec![
        json!({
            "Sid": "AllowRegionalReadActions",
            "Effect": "Allow",
            "Action": actions("ec2", &described),
            "Resource": "*",
            "Condition": { "StringEquals": { "aws:RequestedRegion": region } },
        }),
        json!({
            "Sid": "AllowSSMReadActions",
            "Effect": "Allow",
            "Action": actions("ssm", &["GetParameter"]),
            "Resource": [format!("arn:{partition}:ssm:{region}::parameter/aws/service/*")],
        }),
        json!({
            "Sid": "AllowPricingReadActions",
            "Effect": "Allow",
            "Action": actions("pricing", &["GetProducts"]),
            "Resource": "*",
        }),
        json!({
            "Sid": "AllowInterruptionQueueActions",
            "Effect": "Allow",
            "Action": actions("sqs", &["DeleteMessage", "GetQueueUrl", "ReceiveMessage"]),
            "Resource": "*",
        }),
    ]
}

/// Which roles instances get, and how.
fn profiles(scope: &Scope) -> Vec<Value> {
    let partition = scope.partition();
    let profiles = format!("arn:{partition}:iam::*:instance-profile/*");
    let services = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"];
    vec![
        json!({
            "Sid": "AllowPassingInstanceRole",
            "Effect": "Allow",
            "Action": actions("iam", &["PassRole"]),
            "Resource": [format!("arn:{partition}:iam::*:role/*")],
            "Condition": { "StringEquals": { "iam:PassedToService": services } },
        }),
        json!({
            "Sid": "AllowScopedInstanceProfileCreationActions",
            "Effect": "Allow",
            "Action": actions("iam", &["CreateInstanceProfile"]),
            "Resource": [profiles],
            "Condition": like(&requested(CLASS)),
        }),
        json!({
            "Sid": "AllowScopedInstanceProfileTagActions",
            "Effect": "Allow",
            "Action": actions("iam", &["TagInstanceProfile"]),
            "Resource": [profiles],
            "Condition": { "StringLike": { owned(CLASS): "*", requested(CLASS): "*" } },
        }),
        json!({
            "Sid": "AllowScopedInstanceProfileActions",
            "Effect": "Allow",
            "Action": actions("iam", &[
                "AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile",
            ]),
            "Resource": [profiles],
            "Condition": like(&owned(CLASS)),
        }),
        json!({
            "Sid": "AllowInstanceProfileReadActions",
            "Effect": "Allow",
            "Action": actions("iam", &["GetInstanceProfile"]),
            "Resource": [profiles],
        }),
        json!({
            "Sid": "AllowUnscopedInstanceProfileListAction",
            "Effect": "Allow",
            "Action": actions("iam", &["ListInstanceProfiles"]),
            "Resource": "*",
        }),
    ]
}

fn actions(service: &str, names: &[&str]) -> Vec<String> {
    let names = names.iter();
    names.map(|name| format!("{service}:{name}")).collect()
}

/// The tag that a request sets.
fn requested(tag: &str) -> String {
    format!("aws:RequestTag/{tag}")
}

/// The tag that a resource has.
fn owned(tag: &str) -> String {
    format!("aws:ResourceTag/{tag}")
}

fn like(key: &str) -> Value {
    json!({ "StringLike": { key: "*" } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::aws::call::Tags;

    fn statements(region: &str) -> Vec<Value> {
        let scope = Scope::new("a-x1", "a", region, Tags::new()).unwrap();
        let policy = policy(&scope);
        policy["Statement"].as_array().unwrap().clone()
    }

    /// Karpenter does not touch instances and profiles that it has not made.
    #[test]
    fn what_is_changed_or_ended_has_the_tag() {
        let changes = [
            "Terminate",
            "Delete",
            "AddRole",
            "RemoveRole",
            "Tag",
            "CreateTags",
        ];
        for statement in statements("us-east-1") {
            let actions = statement["Action"].as_array().unwrap();
            let mut names = actions.iter().filter_map(|it| it.as_str()?.split_once(':'));
            let is_change = |(service, name): (&str, &str)| {
                service != "sqs" && changes.iter().any(|it| name.starts_with(it))
            };
            if names.any(is_change) {
                let condition = statement["Condition"]["StringLike"].to_string();
                assert!(condition.contains("karpenter"), "{statement}");
            }
        }
    }

    #[test]
    fn a_policy_is_for_its_partition_and_region() {
        let text = json!(statements("us-gov-west-1")).to_string();
        assert!(
            text.contains("arn:aws-us-gov:ec2:us-gov-west-1:*:instance/*"),
            "{text}"
        );
        assert!(!text.contains("arn:aws:"), "{text}");
        // The limit of an inline policy, without white space.
        assert!(text.len() < 10_240, "{}", text.len());
    }
}
