//! The IAM roles of a cluster's components, with their policies. Pure.

mod karpenter;
mod managed;
mod plan;
mod shared_vpc;

use serde_json::{Value, json};

use super::scope::Scope;
pub(crate) use managed::TAGS as MANAGED_TAGS;
pub(crate) use managed::worker as managed_worker;
pub(crate) use plan::{Form, RolePlan, check_size, plan};
pub(crate) use shared_vpc::SharedRole;

/// Actions of a service.
type Actions = (&'static str, &'static [&'static str]);

/// What one role is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Role {
    /// The end of its name.
    pub(crate) name: &'static str,
    /// Its field in `rolesRef` of a HostedCluster.
    pub(crate) field: Option<&'static str>,
    /// Service accounts of the cluster that act as it: namespace and name, joined by a colon.
    accounts: &'static [&'static str],
    statements: &'static [Statement],
}

#[derive(Debug, Clone, Copy)]
struct Statement {
    actions: &'static [Actions],
    on: On,
    only: Only,
}

/// On what a statement permits its actions.
#[derive(Debug, Clone, Copy)]
enum On {
    Everything,
    PublicAndPrivateZone,
    LocalZone,
    LoadBalancerRole,
    WorkerRoles,
    Key,
}

/// When it permits them.
#[derive(Debug, Clone, Copy)]
enum Only {
    Always,
    /// A grant of KMS for a service of AWS.
    ForServices,
    ForLoadBalancers,
}

/// What policies name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resources {
    pub(crate) public_zone: String,
    pub(crate) private_zone: String,
    pub(crate) local_zone: String,
    /// ARN of the key that encrypts Secrets.
    pub(crate) kms_key: Option<String>,
    /// Whether Karpenter makes nodes.
    pub(crate) auto_node: bool,
    /// Whether the VPC belongs to another account, in which the private zones and endpoints are changed by other roles.
    pub(crate) shared_vpc: bool,
}

const fn on(on: On, actions: &'static [Actions]) -> Statement {
    Statement {
        actions,
        on,
        only: Only::Always,
    }
}

const fn any(actions: &'static [Actions]) -> Statement {
    on(On::Everything, actions)
}

const GRANTS: Only = Only::ForServices;

const INGRESS: &str = "openshift-ingress";
const CONTROL_PLANE: &str = "control-plane-operator";
const CLOUD_CONTROLLER: &str = "cloud-controller";
/// The role of the plugin that encrypts Secrets with a key of KMS.
pub(crate) const KMS_PROVIDER: &str = "kms-provider";
/// The role of Karpenter.
pub(crate) const KARPENTER: &str = "karpenter";
/// The role of workers, and its policy.
pub(crate) const WORKER: &str = "worker";
/// The role of all components.
pub(crate) const SHARED: &str = "shared-role";
/// Roles for a shared VPC, which are in the account of its owner or in that of the cluster. Those with the first two names are
/// made by other tools.
pub(crate) const SHARED_VPC: [&str; 4] = [
    "shared-vpc-ingress",
    "shared-vpc-control-plane",
    SharedRole::Zones.name(),
    SharedRole::Endpoints.name(),
];

#[rustfmt::skip]
pub(crate) const ROLES: [Role; 9] = [
    Role {
        name: INGRESS,
        field: Some("ingressARN"),
        accounts: &["openshift-ingress-operator:ingress-operator"],
        statements: &[
            any(&[
                ("elasticloadbalancing", &["DescribeLoadBalancers"]),
                ("tag", &["GetResources"]),
                ("route53", &["ListHostedZones"]),
            ]),
            on(On::PublicAndPrivateZone, &[("route53", &["ChangeResourceRecordSets"])]),
        ],
    },
    Role {
        name: "openshift-image-registry",
        field: Some("imageRegistryARN"),
        accounts: &[
            "openshift-image-registry:cluster-image-registry-operator",
            "openshift-image-registry:registry",
        ],
        statements: &[any(&[("s3", &[
            "CreateBucket", "DeleteBucket", "PutBucketTagging", "GetBucketTagging", "PutBucketPublicAccessBlock",
            "GetBucketPublicAccessBlock", "PutEncryptionConfiguration", "GetEncryptionConfiguration",
            "PutLifecycleConfiguration", "GetLifecycleConfiguration", "GetBucketLocation", "ListBucket", "GetObject",
            "PutObject", "DeleteObject", "ListBucketMultipartUploads", "AbortMultipartUpload",
            "ListMultipartUploadParts",
        ])])],
    },
    Role {
        name: "aws-ebs-csi-driver-controller",
        field: Some("storageARN"),
        accounts: &["openshift-cluster-csi-drivers:aws-ebs-csi-driver-controller-sa"],
        statements: &[
            any(&[("ec2", &[
                "AttachVolume", "CreateSnapshot", "DeleteSnapshot", "CreateTags", "DeleteTags", "CreateVolume",
                "DeleteVolume", "DescribeInstances", "DescribeSnapshots", "DescribeTags", "DescribeVolumes",
                "DescribeVolumesModifications", "DescribeAvailabilityZones", "DescribeInstanceTypes",
                "DescribeVolumeStatus", "DetachVolume", "ModifyVolume", "EnableFastSnapshotRestores", "CopyVolumes",
                "LockSnapshot",
            ])]),
            any(&[("kms", &[
                "Decrypt", "Encrypt", "GenerateDataKey", "GenerateDataKeyWithoutPlainText", "DescribeKey",
            ])]),
            Statement {
                only: GRANTS,
                ..any(&[("kms", &["RevokeGrant", "CreateGrant", "ListGrants"])])
            },
        ],
    },
    Role {
        name: CLOUD_CONTROLLER,
        field: Some("kubeCloudControllerARN"),
        accounts: &["kube-system:kube-controller-manager"],
        statements: &[any(&[
            ("autoscaling", &["DescribeAutoScalingGroups", "DescribeLaunchConfigurations", "DescribeTags"]),
            ("ec2", &[
                "DescribeAvailabilityZones", "DescribeInstances", "DescribeImages", "DescribeRegions",
                "DescribeRouteTables", "DescribeSecurityGroups", "DescribeSubnets", "DescribeVolumes", "DescribeVpcs",
                "CreateSecurityGroup", "CreateTags", "CreateVolume", "ModifyInstanceAttribute", "ModifyVolume",
                "AttachVolume", "AuthorizeSecurityGroupIngress", "CreateRoute", "DeleteRoute", "DeleteSecurityGroup",
                "DeleteVolume", "DetachVolume", "RevokeSecurityGroupIngress",
            ]),
            ("elasticloadbalancing", &[
                "AddTags", "AttachLoadBalancerToSubnets", "ApplySecurityGroupsToLoadBalancer", "CreateLoadBalancer",
                "CreateLoadBalancerPolicy", "CreateLoadBalancerListeners", "ConfigureHealthCheck",
                "DeleteLoadBalancer", "DeleteLoadBalancerListeners", "DescribeLoadBalancers",
                "DescribeLoadBalancerAttributes", "DescribeLoadBalancerPolicies", "DetachLoadBalancerFromSubnets",
                "RegisterInstancesWithLoadBalancer", "DeregisterInstancesFromLoadBalancer",
                "ModifyLoadBalancerAttributes", "ModifyTargetGroupAttributes",
                "SetLoadBalancerPoliciesForBackendServer", "SetLoadBalancerPoliciesOfListener", "CreateListener",
                "DeleteListener", "DescribeListeners", "ModifyListener", "CreateTargetGroup", "DeleteTargetGroup",
                "DescribeTargetGroups", "ModifyTargetGroup", "DescribeTargetGroupAttributes", "DescribeTargetHealth",
                "RegisterTargets", "DeregisterTargets", "SetSecurityGroups",
            ]),
            ("iam", &["CreateServiceLinkedRole"]),
            ("kms", &["DescribeKey"]),
        ])],
    },
    Role {
        name: "node-pool",
        field: Some("nodePoolManagementARN"),
        accounts: &["kube-system:capa-controller-manager"],
        statements: &[
            any(&[
                ("ec2", &[
                    "AssociateRouteTable", "AttachInternetGateway", "AuthorizeSecurityGroupIngress",
                    "CreateInternetGateway", "CreateNatGateway", "CreateRoute", "CreateRouteTable",
                    "CreateSecurityGroup", "CreateSubnet", "CreateTags", "CreateLaunchTemplate",
                    "CreateLaunchTemplateVersion", "DeleteInternetGateway", "DeleteNatGateway", "DeleteRouteTable",
                    "DeleteSecurityGroup", "DeleteSubnet", "DeleteTags", "DeleteLaunchTemplate",
                    "DeleteLaunchTemplateVersions", "DescribeAccountAttributes", "DescribeAddresses",
                    "DescribeAvailabilityZones", "DescribeImages", "DescribeInstances", "DescribeInstanceTypes",
                    "DescribeInternetGateways", "DescribeNatGateways", "DescribeNetworkInterfaces",
                    "DescribeNetworkInterfaceAttribute", "DescribeRouteTables", "DescribeSecurityGroups",
                    "DescribeSubnets", "DescribeVpcs", "DescribeDhcpOptions", "DescribeVpcAttribute",
                    "DescribeVolumes", "DescribeLaunchTemplates", "DescribeLaunchTemplateVersions",
                    "DetachInternetGateway", "DisassociateRouteTable", "DisassociateAddress",
                    "ModifyInstanceAttribute", "ModifyNetworkInterfaceAttribute", "ModifySubnetAttribute",
                    "RevokeSecurityGroupIngress", "RunInstances", "TerminateInstances",
                ]),
                ("tag", &["GetResources"]),
                ("sqs", &["DeleteMessage", "ReceiveMessage"]),
            ]),
            Statement {
                only: Only::ForLoadBalancers,
                ..on(On::LoadBalancerRole, &[("iam", &["CreateServiceLinkedRole"])])
            },
            on(On::WorkerRoles, &[("iam", &["PassRole"])]),
            any(&[("kms", &["Decrypt", "ReEncrypt", "GenerateDataKeyWithoutPlainText", "DescribeKey"])]),
            Statement {
                only: GRANTS,
                ..any(&[("kms", &["CreateGrant"])])
            },
        ],
    },
    Role {
        name: CONTROL_PLANE,
        field: Some("controlPlaneOperatorARN"),
        accounts: &["kube-system:control-plane-operator"],
        statements: &[
            any(&[
                ("ec2", &[
                    "CreateVpcEndpoint", "DescribeVpcEndpoints", "ModifyVpcEndpoint", "DeleteVpcEndpoints",
                    "CreateTags", "CreateSecurityGroup", "AuthorizeSecurityGroupIngress",
                    "AuthorizeSecurityGroupEgress", "DeleteSecurityGroup", "RevokeSecurityGroupIngress",
                    "RevokeSecurityGroupEgress", "DescribeSecurityGroups", "DescribeVpcs", "DescribeSubnets",
                ]),
                ("route53", &["ListHostedZones", "ListHostedZonesByVPC"]),
            ]),
            on(On::LocalZone, &[("route53", &["ChangeResourceRecordSets", "ListResourceRecordSets"])]),
        ],
    },
    Role {
        name: "cloud-network-config-controller",
        field: Some("networkARN"),
        accounts: &["openshift-cloud-network-config-controller:cloud-network-config-controller"],
        statements: &[any(&[("ec2", &[
            "DescribeInstances", "DescribeInstanceStatus", "DescribeInstanceTypes", "UnassignPrivateIpAddresses",
            "AssignPrivateIpAddresses", "UnassignIpv6Addresses", "AssignIpv6Addresses", "DescribeSubnets",
            "DescribeNetworkInterfaces",
        ])])],
    },
    Role {
        name: KMS_PROVIDER,
        field: None,
        accounts: &["kube-system:kms-provider"],
        statements: &[on(On::Key, &[("kms", &["Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "DescribeKey"])])],
    },
    Role {
        name: KARPENTER,
        field: None,
        accounts: &["kube-system:karpenter"],
        // Its policy is a form of its own.
        statements: &[],
    },
];

// === impl Role ===

impl Role {
    /// Whether a cluster has it.
    pub(crate) fn is_wanted(&self, resources: &Resources) -> bool {
        match self.name {
            KMS_PROVIDER => resources.kms_key.is_some(),
            KARPENTER => resources.auto_node,
            _ => true,
        }
    }

    /// What it may do.
    pub(crate) fn policy(&self, scope: &Scope, resources: &Resources) -> Value {
        let statements = match self.name {
            KARPENTER => return karpenter::policy(scope),
            CONTROL_PLANE if resources.shared_vpc => shared_vpc::CONTROL_PLANE_STATEMENTS,
            _ => self.statements,
        };
        let statements = statements.iter();
        let statements = statements.map(|statement| statement.value(scope, resources));
        json!({ "Version": "2012-10-17", "Statement": statements.collect::<Vec<_>>() })
    }
}

// === impl Statement ===

impl Statement {
    fn value(&self, scope: &Scope, resources: &Resources) -> Value {
        let actions = self.actions.iter().flat_map(|(service, actions)| {
            actions
                .iter()
                .map(move |action| format!("{service}:{action}"))
        });
        let mut value = json!({
            "Effect": "Allow",
            "Action": actions.collect::<Vec<_>>(),
            "Resource": self.on.arns(scope, resources),
        });
        match self.only {
            Only::Always => {}
            Only::ForServices => {
                value["Condition"] = json!({ "Bool": { "kms:GrantIsForAWSResource": true } });
            }
            Only::ForLoadBalancers => {
                let service = "elasticloadbalancing.amazonaws.com";
                value["Condition"] = json!({ "StringLike": { "iam:AWSServiceName": service } });
            }
        }
        value
    }
}

impl On {
    fn arns(self, scope: &Scope, resources: &Resources) -> Value {
        let zone = |id: &str| format!("arn:{}:route53:::hostedzone/{id}", scope.partition());
        match self {
            Self::Everything => json!("*"),
            Self::PublicAndPrivateZone if resources.shared_vpc => {
                json!([zone(&resources.public_zone)])
            }
            Self::PublicAndPrivateZone => {
                json!([zone(&resources.public_zone), zone(&resources.private_zone)])
            }
            Self::LocalZone => json!(zone(&resources.local_zone)),
            Self::LoadBalancerRole => json!(
                "arn:*:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/\
                 AWSServiceRoleForElasticLoadBalancing"
            ),
            Self::WorkerRoles => json!("arn:*:iam::*:role/*-worker-role"),
            Self::Key => json!(resources.kms_key),
        }
    }
}

/// Who may act as a role: service accounts with tokens of the issuer.
fn trust(accounts: &[&str], provider: &str, issuer: &str) -> Value {
    let subject = format!("{}:sub", issuer.trim_start_matches("https://"));
    let accounts = accounts.iter();
    let accounts: Vec<_> = accounts
        .map(|account| format!("system:serviceaccount:{account}"))
        .collect();
    let accounts = match accounts.as_slice() {
        [one] => json!(one),
        several => json!(several),
    };
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "Federated": provider },
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": { "StringEquals": { subject: accounts } },
        }],
    })
}

/// Who may act as the role of workers: instances.
pub(crate) fn worker_trust(scope: &Scope) -> Value {
    let suffix = if scope.partition() == "aws-cn" {
        ".cn"
    } else {
        ""
    };
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "Service": format!("ec2.amazonaws.com{suffix}") },
            "Action": "sts:AssumeRole",
        }],
    })
}

/// What workers may do.
pub(crate) fn worker_policy() -> Value {
    json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Action": ["ec2:DescribeInstances", "ec2:DescribeRegions"],
            "Resource": "*",
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infra::aws::call::Tags;

    fn resources() -> Resources {
        Resources {
            public_zone: "Z1".to_owned(),
            private_zone: "Z2".to_owned(),
            local_zone: "Z3".to_owned(),
            kms_key: None,
            auto_node: false,
            shared_vpc: false,
        }
    }

    fn role(name: &str) -> Role {
        *ROLES.iter().find(|role| role.name == name).unwrap()
    }

    #[test]
    fn roles_are_for_service_accounts_of_the_issuer() {
        let trust_of = |name: &str, issuer: &str| trust(role(name).accounts, "arn:p", issuer);
        let trust = trust_of("openshift-ingress", "https://b.s3.example.com/a");
        let statement = &trust["Statement"][0];
        assert_eq!(statement["Principal"]["Federated"], "arn:p");
        assert_eq!(
            statement["Condition"]["StringEquals"]["b.s3.example.com/a:sub"],
            "system:serviceaccount:openshift-ingress-operator:ingress-operator"
        );
        let trust = trust_of("openshift-image-registry", "https://i");
        let accounts = &trust["Statement"][0]["Condition"]["StringEquals"]["i:sub"];
        assert_eq!(accounts.as_array().unwrap().len(), 2);
    }

    #[test]
    fn policies_name_the_zones_and_the_key() {
        let scope = Scope::new("a-x1", "a", "us-gov-west-1", Tags::new()).unwrap();
        let resource = |name: &str, at: usize, resources: &Resources| {
            role(name).policy(&scope, resources)["Statement"][at]["Resource"].clone()
        };
        let zone = |id: &str| format!("arn:aws-us-gov:route53:::hostedzone/{id}");
        let found = resource("openshift-ingress", 1, &resources());
        assert_eq!(found, json!([zone("Z1"), zone("Z2")]));
        let found = resource("control-plane-operator", 1, &resources());
        assert_eq!(found, json!(zone("Z3")));
        assert!(!role(KMS_PROVIDER).is_wanted(&resources()));
        let encrypted = Resources {
            kms_key: Some("arn:key".to_owned()),
            ..resources()
        };
        assert!(role(KMS_PROVIDER).is_wanted(&encrypted));
        assert!(!role(KARPENTER).is_wanted(&encrypted));
        assert_eq!(resource(KMS_PROVIDER, 0, &encrypted), "arn:key");
    }

    /// Statements and actions of each role, and the fields of `rolesRef`.
    #[test]
    fn roles_have_as_many_actions_as_their_components_need() {
        let scope = Scope::new("a-x1", "a", "us-east-1", Tags::new()).unwrap();
        let counts = ROLES.map(|role| {
            let policy = role.policy(&scope, &resources());
            let statements = policy["Statement"].as_array().unwrap();
            let actions = statements
                .iter()
                .map(|it| it["Action"].as_array().unwrap().len());
            (statements.len(), actions.sum::<usize>())
        });
        let expected = [
            (2, 4),
            (1, 18),
            (3, 28),
            (1, 59),
            (5, 58),
            (2, 18),
            (1, 9),
            (1, 5),
            (16, 33),
        ];
        assert_eq!(counts, expected);
        let fields: Vec<_> = ROLES.iter().filter_map(|role| role.field).collect();
        assert_eq!(fields.len(), 7);
        let grants = &role("node-pool").policy(&scope, &resources())["Statement"][4];
        assert_eq!(
            grants["Condition"]["Bool"]["kms:GrantIsForAWSResource"],
            true
        );
    }
}
