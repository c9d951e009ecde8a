//! The private connection between the nodes and the control plane on Azure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, rule, set, with};

/// The private connection between the nodes' network and the control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(oldSelf.type) || oldSelf.type == self.type",
        "the kind of private connection is fixed when the cluster is created; create a new cluster \
         to use the other one"
    ),
    transform = rule(
        "(self.type == 'PrivateLink') == has(self.privateLink)",
        "privateLink is required with type PrivateLink and not allowed otherwise; add it, remove \
         it or correct type"
    ),
    transform = rule(
        "(self.type == 'Swift') == has(self.swift)",
        "swift is required with type Swift and not allowed otherwise; add it, remove it or correct \
         type"
    ),
)]
pub struct AzurePrivateSpec {
    /// How the connection is made. It cannot be changed later.
    #[serde(rename = "type")]
    pub type_: AzurePrivateType,
    /// Settings of the private link, when `type` is `PrivateLink`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_link: Option<AzurePrivateLinkSpec>,
    /// Settings of the pod network, when `type` is `Swift`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<AzureSwiftSpec>,
}

/// A Private Link service in front of the control plane, and its endpoint in the nodes' network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct AzurePrivateLinkSpec {
    /// Resource ID of the subnet from which the Private Link service takes the addresses that it
    /// translates to.
    /// It lies in the management cluster's network, and private link network policies are off for
    /// it. Without a value one is made.
    #[serde(rename = "natSubnetID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 355),
        transform = immutable(
            "the subnet of the private link is fixed once it is set; put back the value that it \
             had"
        ),
        transform = rule(
            "self.matches('^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft[.]Network/virtualNetworks/[^/]+/subnets/[^/]+$')",
            "natSubnetID must be of the form \
             /subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>"
        ),
    )]
    pub nat_subnet_id: Option<String>,
    /// IDs of subscriptions with automatically approved private endpoints, in addition to the
    /// cluster's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 50), transform = set)]
    pub additional_allowed_subscriptions: Vec<AzureSubscriptionId>,
}

/// ID of an Azure subscription.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$')",
        "the ID of a subscription must be a UUID such as 00000000-0000-0000-0000-000000000000"
    ),
)]
pub struct AzureSubscriptionId(#[schemars(length(equal = 36))] pub String);

/// Pods of the control plane that have an address in the nodes' network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "oldSelf.podNetworkInstance == self.podNetworkInstance",
        "the pod network instance is fixed when the cluster is created; leave it as it is"
    ),
)]
pub struct AzureSwiftSpec {
    /// Name of the PodNetworkInstance that gives pods of the control plane their interface in the
    /// nodes' network.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[a-z0-9]+(-+[a-z0-9]+)*$')",
            "podNetworkInstance must have lower-case letters, digits and hyphens only, and begin \
             and end with a letter or digit"
        ),
    )]
    pub pod_network_instance: String,
}

/// How a private connection is made on Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzurePrivateType {
    /// By a Private Link service and an endpoint.
    PrivateLink,
    /// By pods with an interface in the nodes' network.
    Swift,
}
