//! A hosted cluster on OpenStack. It is part of the technology preview.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::schema::{atomic_list, no_format, rule, set, with};

/// Settings for OpenStack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackPlatformSpec {
    /// Credentials for the cloud.
    pub identity_ref: OpenStackIdentityReference,
    /// Subnets that are created for the nodes, when `subnets` is empty. There can be one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1), transform = atomic_list)]
    pub managed_subnets: Vec<OpenStackSubnetSpec>,
    /// Existing router for the cluster's subnets. Without it, one is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<OpenStackRouterParam>,
    /// Existing network of the nodes. Without it, one is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<OpenStackNetworkParam>,
    /// Existing subnets of the nodes: two for IPv4 and IPv6. Without them, `managedSubnets` are
    /// created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), transform = atomic_list)]
    pub subnets: Vec<OpenStackSubnetParam>,
    /// MTU of a network that is created, in bytes.
    #[serde(
        rename = "networkMTU",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1500, max = 9000), transform = no_format)]
    pub network_mtu: Option<i64>,
    /// Network with the floating IPs. Without it, the only external network of the project is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_network: Option<OpenStackNetworkParam>,
    /// Creates no connection between the cluster's network and an external network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_external_network: Option<bool>,
    /// Tags for the resources that the cluster creates on OpenStack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 255)), transform = set)]
    pub tags: Vec<String>,
    /// Floating IP for the load balancer of the default ingress controller. It must exist and be
    /// free.
    #[serde(
        rename = "ingressFloatingIP",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(max = 45),
        transform = rule(
            "isIP(self)",
            "ingressFloatingIP must be an IPv4 or IPv6 address"
        ),
    )]
    pub ingress_floating_ip: Option<String>,
}

/// Credentials for a cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackIdentityReference {
    /// Secret in the HostedCluster's namespace with the file `clouds.yaml` and, under the key
    /// `cacert`, the certificate authorities of the cloud if they are not public.
    #[schemars(length(max = 255))]
    pub name: String,
    /// Name of the cloud in `clouds.yaml`.
    #[schemars(length(max = 255))]
    pub cloud_name: String,
}

/// A subnet that is created. Its address range is the machine network of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackSubnetSpec {
    /// Addresses of name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 45)))]
    pub dns_nameservers: Vec<String>,
    /// Ranges that addresses of machines are taken from. Without them, it is the whole subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub allocation_pools: Vec<OpenStackAllocationPool>,
}

/// A range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackAllocationPool {
    /// The first address.
    #[schemars(length(max = 255))]
    pub start: String,
    /// The last address.
    #[schemars(length(max = 255))]
    pub end: String,
}

/// A router, by its ID or by a filter that finds it. Give one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = one_of_two)]
pub struct OpenStackRouterParam {
    /// ID of the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What finds the router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<OpenStackFilter>,
}

/// A network, by its ID or by a filter that finds it. Give one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = one_of_two)]
pub struct OpenStackNetworkParam {
    /// ID of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What finds the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<OpenStackFilter>,
}

/// A subnet, by its ID or by a filter that finds it. Give one of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = one_of_two)]
pub struct OpenStackSubnetParam {
    /// ID of the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 36), extend("format" = "uuid"))]
    pub id: Option<String>,
    /// What finds the subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<OpenStackSubnetFilter>,
}

/// What finds a network or a router. All that is given must match, and one resource must be left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OpenStackFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// ID of the project that it belongs to.
    #[serde(rename = "projectID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub project_id: Option<String>,
    /// Its tags.
    #[serde(flatten)]
    pub tags: OpenStackTagFilter,
}

/// What finds a subnet. All that is given must match, and one subnet must be left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OpenStackSubnetFilter {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub name: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// ID of the project that it belongs to.
    #[serde(rename = "projectID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub project_id: Option<String>,
    /// IP version of its addresses: 4 or 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647), transform = no_format)]
    pub ip_version: Option<i64>,
    /// Address of its gateway.
    #[serde(rename = "gatewayIP", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub gateway_ip: Option<String>,
    /// Its address range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 45))]
    pub cidr: Option<String>,
    /// How machines get IPv6 addresses, for example `slaac`.
    #[serde(
        rename = "ipv6AddressMode",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub ipv6_address_mode: Option<String>,
    /// How routers advertise IPv6, for example `slaac`.
    #[serde(
        rename = "ipv6RAMode",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub ipv6_ra_mode: Option<String>,
    /// Its tags.
    #[serde(flatten)]
    pub tags: OpenStackTagFilter,
}

/// Tags of a resource that is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackTagFilter {
    /// Tags of which it has all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), transform = set)]
    pub tags: Vec<OpenStackTag>,
    /// Tags of which it has at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), transform = set)]
    pub tags_any: Vec<OpenStackTag>,
    /// Tags of which it lacks at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), transform = set)]
    pub not_tags: Vec<OpenStackTag>,
    /// Tags of which it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), transform = set)]
    pub not_tags_any: Vec<OpenStackTag>,
}

/// A tag of a resource on OpenStack. A comma is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenStackTag(
    #[schemars(length(min = 1, max = 255), regex(pattern = "^[^,]+$"))] pub String,
);

/// An ID or a filter.
fn one_of_two(schema: &mut Schema) {
    with("minProperties", 1)(schema);
    with("maxProperties", 1)(schema);
}
