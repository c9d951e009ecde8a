//! How Azure's private link leads from a hosted cluster's network to its control plane.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::schema::{self, immutable, list_map, rule, set, with};

/// Which load balancer is reached, and from where.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "AzurePrivateLinkService",
    doc = "How Azure's private link leads from a hosted cluster's network to its control plane.",
    namespaced,
    status = "AzurePrivateLinkServiceStatus",
    derive = "PartialEq",
    shortname = "azpls",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(
        name = "PLS Alias",
        type_ = "string",
        json_path = ".status.privateLinkServiceAlias"
    ),
    printcolumn(
        name = "Endpoint IP",
        type_ = "string",
        json_path = ".status.privateEndpointIP"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="AzurePrivateLinkServiceAvailable")].status"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AzurePrivateLinkServiceSpec {
    /// The address of the internal load balancer that the service is made for. Filled in once it is known.
    #[serde(
        rename = "loadBalancerIP",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 39), transform = rule("isIP(self)", "loadBalancerIP must be an IPv4 or IPv6 address"))]
    pub load_balancer_ip: Option<String>,
    /// The subscription that the service is made in.
    #[serde(rename = "subscriptionID")]
    #[schemars(
        length(min = 36, max = 36),
        transform = immutable("subscriptionID cannot change: create an AzurePrivateLinkService for the other subscription"),
        transform = subscription,
    )]
    pub subscription_id: String,
    /// The resource group that the service is made in.
    #[schemars(
        length(min = 1, max = 90),
        transform = immutable("resourceGroupName cannot change: create an AzurePrivateLinkService for the other resource group"),
        transform = rule(
            "self.matches('^[-_.()0-9A-Za-z]*[-_()0-9A-Za-z]$')",
            "resourceGroupName must be letters, digits and -_.() and cannot end with a dot"
        ),
    )]
    pub resource_group_name: String,
    /// The Azure region, such as `eastus`.
    #[schemars(
        length(min = 1, max = 50),
        transform = immutable("location cannot change: create an AzurePrivateLinkService for the other region"),
        transform = rule(
            "!self.matches('[^a-z0-9]')",
            "location must be a region's short name in lower case, such as eastus"
        ),
    )]
    pub location: String,
    /// The subnet in the management cluster's network from which the service takes addresses. Unset: one is created.
    #[serde(
        rename = "natSubnetID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 355),
        transform = immutable("natSubnetID cannot change: create an AzurePrivateLinkService for the other subnet"),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/virtualNetworks/[^/]+/subnets/[^/]+$')",
            "natSubnetID must be a resource id: /subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<network>/subnets/<subnet>"
        ),
    )]
    pub nat_subnet_id: Option<String>,
    /// Further subscriptions that may connect, beside that of the hosted cluster's network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 50), transform = set)]
    pub additional_allowed_subscriptions: Vec<AzureSubscriptionId>,
    /// The subnet that gets the endpoint, in the network of the hosted cluster.
    #[serde(rename = "guestSubnetID")]
    #[schemars(
        length(min = 1, max = 355),
        transform = immutable("guestSubnetID cannot change: create an AzurePrivateLinkService for the other subnet"),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/virtualNetworks/[^/]+/subnets/[^/]+$')",
            "guestSubnetID must be a resource id: /subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<network>/subnets/<subnet>"
        ),
    )]
    pub guest_subnet_id: String,
    /// The network of the hosted cluster, which the private DNS zone is linked to.
    #[serde(rename = "guestVNetID")]
    #[schemars(
        length(min = 1, max = 355),
        transform = immutable("guestVNetID cannot change: create an AzurePrivateLinkService for the other network"),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/virtualNetworks/[^/]+$')",
            "guestVNetID must be a resource id: /subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<network>"
        ),
    )]
    pub guest_vnet_id: String,
    /// The base domain of the hosted cluster, where its names have to resolve in that network as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = immutable("baseDomain cannot change: create an AzurePrivateLinkService for the other domain"),
        transform = domain("baseDomain must be a DNS name, such as example.com"),
    )]
    pub base_domain: Option<String>,
}

/// A subscription's id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = subscription)]
pub struct AzureSubscriptionId(#[schemars(length(min = 36, max = 36))] pub String);

/// What was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct AzurePrivateLinkServiceStatus {
    /// Whether each part of the connection is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(min = 1, max = 10),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
    /// The internal load balancer that was found for the address.
    #[serde(
        rename = "internalLoadBalancerID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 284),
        transform = rule(
            "self.matches('^/subscriptions/[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/resourceGroups/[^/]+/providers/Microsoft[.]Network/loadBalancers/[^/]+$')",
            "internalLoadBalancerID must be the resource id of a load balancer, with the subscription's UUID"
        ),
    )]
    pub internal_load_balancer_id: Option<String>,
    /// The resource id of the private link service.
    #[serde(
        rename = "privateLinkServiceID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 270),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/privateLinkServices/[^/]+$')",
            "privateLinkServiceID must be the resource id of a private link service"
        ),
    )]
    pub private_link_service_id: Option<String>,
    /// The name under which the service is found from other subscriptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 170),
        transform = rule(
            "self.matches('^[^.]+[.][-0-9A-Fa-f]+[.][0-9a-z]+[.]azure[.]privatelinkservice$')",
            "privateLinkServiceAlias must be of the form <prefix>.<UUID>.<region>.azure.privatelinkservice"
        ),
    )]
    pub private_link_service_alias: Option<String>,
    /// The resource id of the endpoint in the network of the hosted cluster.
    #[serde(
        rename = "privateEndpointID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 267),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/privateEndpoints/[^/]+$')",
            "privateEndpointID must be the resource id of a private endpoint"
        ),
    )]
    pub private_endpoint_id: Option<String>,
    /// The endpoint's address in the network of the hosted cluster.
    #[serde(
        rename = "privateEndpointIP",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 39), transform = rule("isIP(self)", "privateEndpointIP must be an IPv4 or IPv6 address"))]
    pub private_endpoint_ip: Option<String>,
    /// The resource id of the private DNS zone for the control plane's names.
    #[serde(
        rename = "privateDNSZoneID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 265), transform = dns_zone("privateDNSZoneID must be the resource id of a private DNS zone"))]
    pub private_dns_zone_id: Option<String>,
    /// The name of that zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = domain("dnsZoneName must be a DNS name, such as example.com"),
    )]
    pub dns_zone_name: Option<String>,
    /// The resource id of the private DNS zone for the base domain.
    #[serde(
        rename = "baseDomainDNSZoneID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 265), transform = dns_zone("baseDomainDNSZoneID must be the resource id of a private DNS zone"))]
    pub base_domain_dns_zone_id: Option<String>,
}

impl Kind for AzurePrivateLinkService {
    const DESCRIPTION: &'static str = "How Azure's private link leads from a hosted cluster's network to its control plane. Made by the control plane operator.";
    const REQUIRED: &'static [&'static str] = &["spec"];
}

fn subscription(schema: &mut Schema) {
    rule(
        "self.matches('^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$')",
        "a subscription's id must be a UUID, such as 00000000-1111-2222-3333-444444444444",
    )(schema);
}

fn domain(message: &'static str) -> impl FnMut(&mut Schema) {
    rule(
        "self.matches('^[0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?([.][0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?)*$')",
        message,
    )
}

fn dns_zone(message: &'static str) -> impl FnMut(&mut Schema) {
    rule(
        "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/privateDnsZones/[^/]+$')",
        message,
    )
}
