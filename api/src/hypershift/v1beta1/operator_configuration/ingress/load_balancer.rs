//! A cloud's load balancer in front of an ingress controller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::operator_configuration::ingress::IngressProtocol;
use crate::schema::{atomic_list, nullable, rule, with};

/// A cloud's load balancer in front of routers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!(has(self.scope) && self.scope == 'Internal' && \
         has(self.providerParameters) && has(self.providerParameters.aws) && \
         has(self.providerParameters.aws.networkLoadBalancer)) || \
         !has(self.providerParameters.aws.networkLoadBalancer.eipAllocations)",
        "elastic IP addresses need scope External; remove eipAllocations or change the scope"
    ),
    transform = rule(
        "!(has(self.scope) && self.scope == 'Internal' && \
         has(self.providerParameters) && has(self.providerParameters.openstack) && \
         has(self.providerParameters.openstack.floatingIP)) || \
         self.providerParameters.openstack.floatingIP.size() == 0",
        "a floating IP address needs scope External; remove floatingIP or change the scope"
    ),
)]
pub struct LoadBalancerStrategy {
    /// From where the load balancer is reached.
    pub scope: LoadBalancerScope,
    /// Address ranges, in CIDR notation, from which the load balancer may be reached; nothing
    /// listed means from everywhere.
    /// Not every cloud takes it into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        inner(regex(pattern = r"(^(([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])\.){3}([0-9]|[0-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])/([0-9]|[12][0-9]|3[0-2])$)|(^s*((([0-9A-Fa-f]{1,4}:){7}([0-9A-Fa-f]{1,4}|:))|(([0-9A-Fa-f]{1,4}:){6}(:[0-9A-Fa-f]{1,4}|((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3})|:))|(([0-9A-Fa-f]{1,4}:){5}(((:[0-9A-Fa-f]{1,4}){1,2})|:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3})|:))|(([0-9A-Fa-f]{1,4}:){4}(((:[0-9A-Fa-f]{1,4}){1,3})|((:[0-9A-Fa-f]{1,4})?:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){3}(((:[0-9A-Fa-f]{1,4}){1,4})|((:[0-9A-Fa-f]{1,4}){0,2}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){2}(((:[0-9A-Fa-f]{1,4}){1,5})|((:[0-9A-Fa-f]{1,4}){0,3}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(([0-9A-Fa-f]{1,4}:){1}(((:[0-9A-Fa-f]{1,4}){1,6})|((:[0-9A-Fa-f]{1,4}){0,4}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:))|(:(((:[0-9A-Fa-f]{1,4}){1,7})|((:[0-9A-Fa-f]{1,4}){0,5}:((25[0-5]|2[0-4]d|1dd|[1-9]?d)(.(25[0-5]|2[0-4]d|1dd|[1-9]?d)){3}))|:)))(%.+)?s*(\/(12[0-8]|1[0-1][0-9]|[1-9][0-9]|[0-9]))$)")),
        transform = nullable,
        transform = atomic_list,
    )]
    pub allowed_source_ranges: Option<Vec<String>>,
    /// Settings of the cloud's load balancer. Without them the cloud's usual settings are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_parameters: Option<ProviderLoadBalancerParameters>,
    /// Whether the ingress operator writes the load balancer's DNS record.
    #[schemars(extend("default" = "Managed"))]
    pub dns_management_policy: LoadBalancerDnsManagementPolicy,
}

/// Settings of a cloud's load balancer.
/// Fill in the member that belongs to `type`, if there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.openstack) || (has(self.type) && self.type == 'OpenStack')",
        "openstack is allowed with type OpenStack only; remove it or correct type"
    ),
)]
pub struct ProviderLoadBalancerParameters {
    /// The cloud.
    #[serde(rename = "type")]
    pub type_: LoadBalancerProviderType,
    /// Settings for AWS, when `type` is `AWS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsLoadBalancerParameters>,
    /// Settings for Google Cloud, when `type` is `GCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp: Option<GcpLoadBalancerParameters>,
    /// Settings for IBM Cloud, when `type` is `IBM`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ibm: Option<IbmLoadBalancerParameters>,
    /// Settings for OpenStack, when `type` is `OpenStack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openstack: Option<OpenStackLoadBalancerParameters>,
}

/// A load balancer of AWS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsLoadBalancerParameters {
    /// The kind of load balancer.
    #[serde(rename = "type")]
    pub type_: AwsLoadBalancerType,
    /// Settings of a classic load balancer, when `type` is `Classic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classic_load_balancer: Option<AwsClassicLoadBalancerParameters>,
    /// Settings of a network load balancer, when `type` is `NLB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_load_balancer: Option<AwsNetworkLoadBalancerParameters>,
}

/// Settings of a classic load balancer of AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsClassicLoadBalancerParameters {
    /// How long a connection may be idle before the load balancer closes it, as a duration such as
    /// `5m`.
    /// Without a value AWS decides, at present 60 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = with("format", "duration"))]
    pub connection_idle_timeout: Option<String>,
    /// Subnets of the load balancer. Without them AWS finds subnets by their tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnets: Option<AwsSubnets>,
}

/// Settings of a network load balancer of AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.eipAllocations) || !has(self.subnets) || \
         !has(self.subnets.ids) || !has(self.subnets.names) || \
         self.subnets.ids.size() + self.subnets.names.size() == self.eipAllocations.size()",
        "there must be as many eipAllocations as subnets by ID and name together; add or remove \
         some"
    ),
    transform = rule(
        "!has(self.eipAllocations) || !has(self.subnets) || \
         !has(self.subnets.ids) || has(self.subnets.names) || \
         self.subnets.ids.size() == self.eipAllocations.size()",
        "there must be as many eipAllocations as subnets by ID; add or remove some"
    ),
    transform = rule(
        "!has(self.eipAllocations) || !has(self.subnets) || \
         !has(self.subnets.names) || has(self.subnets.ids) || \
         self.subnets.names.size() == self.eipAllocations.size()",
        "there must be as many eipAllocations as subnets by name; add or remove some"
    ),
)]
pub struct AwsNetworkLoadBalancerParameters {
    /// Subnets of the load balancer. Without them AWS finds subnets by their tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnets: Option<AwsSubnets>,
    /// Elastic IP addresses of the load balancer, one for each subnet, by allocation ID.
    /// They need a load balancer that is reached from the internet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        transform = rule(
            "self.all(id, self.filter(other, other == id).size() == 1)",
            "an allocation is listed twice; remove one of the two"
        ),
        transform = atomic_list,
    )]
    pub eip_allocations: Vec<EipAllocation>,
    /// How routers learn the address of the client. Without a value it is TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<AwsLoadBalancerProtocol>,
}

/// Allocation ID of an elastic IP address.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^eipalloc-')",
        "an allocation must be an allocation ID, which begins with eipalloc-"
    ),
    transform = rule(
        "self.split('-', 2)[1].matches('[[:xdigit:]]{17}$')",
        "an allocation must be eipalloc- and 17 hexadecimal digits"
    ),
)]
pub struct EipAllocation(#[schemars(length(equal = 26))] pub String);

/// Subnets of AWS, 10 at most, by ID, by name or both. There must be one for each availability
/// zone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!(has(self.ids) && has(self.names)) || self.ids.size() + self.names.size() < 11",
        "there can be 10 subnets, by ID and name together; remove some"
    ),
    transform = rule(
        "(has(self.ids) && size(self.ids) != 0) || (has(self.names) && size(self.names) != 0)",
        "name at least one subnet in ids or names, or remove subnets"
    ),
)]
pub struct AwsSubnets {
    /// IDs of subnets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        inner(length(equal = 24), regex(pattern = "^subnet-[0-9A-Za-z]+$")),
        transform = rule(
            "self.all(id, self.filter(other, other == id).size() == 1)",
            "a subnet is listed twice; remove one of the two"
        ),
        transform = atomic_list,
    )]
    pub ids: Vec<String>,
    /// Names of subnets, which are the values of their `Name` tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 10),
        transform = rule(
            "self.all(name, self.filter(other, other == name).size() == 1)",
            "a subnet is listed twice; remove one of the two"
        ),
        transform = atomic_list,
    )]
    pub names: Vec<AwsSubnetName>,
}

/// Name of an AWS subnet.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "!self.matches(',')",
        "a subnet's name must not contain a comma; give the subnet by its ID instead"
    ),
    transform = rule("!self.matches('^subnet-')", "this looks like a subnet's ID; put it in ids"),
)]
pub struct AwsSubnetName(#[schemars(length(min = 1, max = 256))] pub String);

/// A load balancer of Google Cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpLoadBalancerParameters {
    /// From which regions an internal load balancer is reached. Without a value it is the cluster's
    /// own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_access: Option<GcpClientAccess>,
}

/// A load balancer of IBM Cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmLoadBalancerParameters {
    /// How routers learn the address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IngressProtocol>,
}

/// A load balancer of OpenStack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackLoadBalancerParameters {
    /// Floating IP address for the load balancer, of its external network. It must exist, and be
    /// free.
    #[serde(rename = "floatingIP", skip_serializing_if = "Option::is_none")]
    #[schemars(transform = rule("isIP(self)", "floatingIP must be an IP address, IPv4 or IPv6"))]
    pub floating_ip: Option<String>,
}

/// From where a load balancer is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LoadBalancerScope {
    /// From the cluster's own network.
    Internal,
    /// From the internet.
    External,
}

/// Who writes the DNS record of a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LoadBalancerDnsManagementPolicy {
    /// The ingress operator.
    Managed,
    /// The administrator of the cluster.
    Unmanaged,
}

/// A cloud with load balancers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LoadBalancerProviderType {
    /// Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Machines without a cloud.
    BareMetal,
    /// Google Cloud.
    #[serde(rename = "GCP")]
    Gcp,
    /// Nutanix.
    Nutanix,
    /// OpenStack.
    OpenStack,
    /// VMware vSphere.
    VSphere,
    /// IBM Cloud.
    #[serde(rename = "IBM")]
    Ibm,
}

/// A kind of load balancer of AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsLoadBalancerType {
    /// A classic load balancer.
    Classic,
    /// A network load balancer.
    #[serde(rename = "NLB")]
    Nlb,
}

/// How routers behind a network load balancer learn the address of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AwsLoadBalancerProtocol {
    /// From the connection itself.
    #[serde(rename = "TCP")]
    Tcp,
    /// From the PROXY protocol.
    #[serde(rename = "PROXY")]
    Proxy,
}

/// From which regions an internal load balancer of Google Cloud is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GcpClientAccess {
    /// All.
    Global,
    /// The load balancer's own.
    Local,
}
