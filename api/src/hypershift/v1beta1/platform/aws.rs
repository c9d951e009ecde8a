//! A hosted cluster on AWS.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// Settings for AWS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsPlatformSpec {
    /// AWS region of the cluster, for example `eu-central-1`. Its nodes, load balancers and volumes
    /// are created there.
    #[schemars(length(max = 255))]
    pub region: String,
    /// Network that the cloud controller manager works in.
    /// Without it, load balancers and node addresses cannot be managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_provider_config: Option<AwsCloudProviderConfig>,
    /// The IAM roles that components of the cluster assume, one for each job.
    pub roles_ref: AwsRolesReference,
    /// Tags for the resources that the cluster creates on AWS, in addition to those that OpenShift
    /// sets by itself.
    /// AWS allows 50 tags for a resource; 25 of them may be given here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 25))]
    pub resource_tags: Vec<HostedClusterAwsResourceTag>,
    /// From where the API server and the other services of the control plane are reached.
    /// It may be changed while the cluster runs.
    #[serde(default)]
    pub endpoint_access: AwsEndpointAccess,
    /// ARNs of AWS principals that may connect to the VPC endpoint service of a private cluster, in
    /// addition to the cluster's own role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 25), inner(length(max = 255)))]
    pub additional_allowed_principals: Vec<String>,
    /// Whether the release image holds all architectures, so that node pools may use different
    /// ones.
    /// If not, all node pools must have the architecture of the release.
    #[serde(default)]
    pub multi_arch: bool,
    /// The owner of the VPC, when it belongs to another AWS account and is shared with the one of
    /// the cluster.
    #[serde(rename = "sharedVPC", skip_serializing_if = "Option::is_none")]
    pub shared_vpc: Option<AwsSharedVpc>,
    /// Endpoints to use for AWS services in place of the public ones, for example in an isolated
    /// region.
    /// A service may be listed once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub service_endpoints: Vec<AwsServiceEndpoint>,
    /// URL of the SQS queue that receives notices about spot instances that AWS is about to take
    /// back.
    /// With it, such nodes are drained before they vanish; it can be changed at any time.
    #[serde(
        rename = "terminationHandlerQueueURL",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(max = 512),
        regex(
            pattern = r"^https://sqs\.[a-z0-9-]+\.amazonaws\.com/[0-9]{12}/[a-zA-Z0-9_-]+(\.fifo)?$"
        )
    )]
    pub termination_handler_queue_url: Option<String>,
}

/// Network that the cloud controller manager works in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsCloudProviderConfig {
    /// Subnet for load balancers of the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<AwsCloudProviderSubnet>,
    /// ID of the VPC.
    #[schemars(length(max = 255))]
    pub vpc: String,
    /// Availability zone of the cluster's first subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub zone: Option<String>,
}

/// A subnet, by its ID or by filters that find it. Give one of the two.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsCloudProviderSubnet {
    /// ID of the subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub id: Option<String>,
    /// Filters that find the subnet, as in the AWS API. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub filters: Vec<AwsFilter>,
}

/// A filter for AWS resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsFilter {
    /// Name of the filter, for example `tag:Name`. AWS documents the filters of each resource;
    /// letter case matters.
    #[schemars(length(max = 255))]
    pub name: String,
    /// Values, one of which must match. `*` and `?` are wildcards.
    #[schemars(length(max = 50), inner(length(max = 255)))]
    pub values: Vec<String>,
}

/// The IAM roles that components of the cluster assume through the cluster's OIDC issuer, one for
/// each job.
/// Each role must trust the issuer and the service account of its component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsRolesReference {
    /// ARN of the role of the ingress operator, which finds load balancers and writes DNS records.
    /// It needs `elasticloadbalancing:DescribeLoadBalancers`, `route53:ListHostedZones`,
    /// `route53:ListTagsForResources`, `route53:ChangeResourceRecordSets` and `tag:GetResources`.
    #[serde(rename = "ingressARN")]
    #[schemars(length(max = 2048))]
    pub ingress_arn: String,
    /// ARN of the role of the image registry operator, which keeps images in a bucket.
    /// It needs to create, tag, configure and delete S3 buckets, and to read and write objects in
    /// them.
    #[serde(rename = "imageRegistryARN")]
    #[schemars(length(max = 2048))]
    pub image_registry_arn: String,
    /// ARN of the role of the EBS storage driver.
    /// It needs to create, attach, modify, tag and delete EC2 volumes and snapshots, and to
    /// describe instances.
    #[serde(rename = "storageARN")]
    #[schemars(length(max = 2048))]
    pub storage_arn: String,
    /// ARN of the role of the network operator's cloud controller, which assigns addresses to
    /// nodes.
    /// It needs to describe instances, interfaces and subnets, and to assign and unassign private
    /// addresses.
    #[serde(rename = "networkARN")]
    #[schemars(length(max = 2048))]
    pub network_arn: String,
    /// ARN of the role of the cloud controller manager, which creates load balancers and labels
    /// nodes.
    /// It needs to manage load balancers and security groups, and to describe instances, regions,
    /// routes, subnets and VPCs.
    #[serde(rename = "kubeCloudControllerARN")]
    #[schemars(length(max = 2048))]
    pub kube_cloud_controller_arn: String,
    /// ARN of the role of the Cluster API provider, which creates and deletes the instances of node
    /// pools.
    /// It needs to run and terminate instances, to manage their interfaces, volumes and tags, and
    /// to pass the nodes' instance role.
    #[serde(rename = "nodePoolManagementARN")]
    #[schemars(length(max = 2048))]
    pub node_pool_management_arn: String,
    /// ARN of the role of the control plane operator, which creates the default security group and
    /// the endpoint of a private cluster.
    /// It needs to manage VPC endpoints and security groups, and DNS records of the private zone.
    #[serde(rename = "controlPlaneOperatorARN")]
    #[schemars(length(max = 2048))]
    pub control_plane_operator_arn: String,
}

/// A tag for resources that the cluster creates on AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedClusterAwsResourceTag {
    /// Key of the tag.
    #[schemars(
        length(min = 1, max = 128),
        transform = rule(
            "self.matches('^[-A-Za-z0-9_.:/=+@]+$')",
            "a tag's key may hold letters, digits and _.:/=+-@ only; rename the tag"
        ),
    )]
    pub key: String,
    /// Value of the tag. Some AWS services take fewer characters than others; these are taken by
    /// all.
    #[schemars(
        length(min = 1, max = 256),
        transform = rule(
            "self.matches('^[-A-Za-z0-9_.:/=+@]+$')",
            "a tag's value may hold letters, digits and _.:/=+-@ only; change the value"
        ),
    )]
    pub value: String,
    /// Whether a node pool may give the tag another value.
    /// Without it, the value of the cluster wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub override_policy: Option<AwsTagOverridePolicy>,
}

/// An endpoint for one AWS service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsServiceEndpoint {
    /// Short name of the service, for example `ec2` or `sts`.
    #[schemars(length(max = 255))]
    pub name: String,
    /// URL of the endpoint. It begins with `https://`.
    #[schemars(length(max = 2048), regex(pattern = "^https://"))]
    pub url: String,
}

/// The account that owns a shared VPC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSharedVpc {
    /// Roles in the owner's account that the cluster assumes.
    pub roles_ref: AwsSharedVpcRolesReference,
    /// ID of the private hosted zone `<cluster name>.hypershift.local` in the owner's account,
    /// attached to the VPC.
    #[serde(rename = "localZoneID")]
    #[schemars(length(max = 32))]
    pub local_zone_id: String,
}

/// IAM roles in the account that owns a shared VPC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsSharedVpcRolesReference {
    /// ARN of a role that may write records in the cluster's private zone of the VPC. The ingress
    /// operator assumes it.
    #[serde(rename = "ingressARN")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$")
    )]
    pub ingress_arn: String,
    /// ARN of a role that may manage VPC endpoints, security groups and records of the local zone.
    /// The control plane operator assumes it.
    #[serde(rename = "controlPlaneARN")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role\/.*$")
    )]
    pub control_plane_arn: String,
}

/// From where a control plane on AWS is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsEndpointAccess {
    /// From the internet.
    #[default]
    Public,
    /// From the internet and, for nodes, through a private endpoint in the VPC.
    PublicAndPrivate,
    /// Only from the VPC, through a private endpoint.
    Private,
}

/// Whether a node pool may change a tag of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsTagOverridePolicy {
    /// A tag of the same key in a node pool wins for the nodes of that pool.
    Allow,
    /// The value of the cluster wins everywhere.
    Deny,
}
