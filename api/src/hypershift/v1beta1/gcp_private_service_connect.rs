//! How Private Service Connect of Google Cloud leads from a hosted cluster's network to its control plane. The kind is part
//! of the technology preview.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::hypershift::v1beta1::platform::gcp::resource_name;
use crate::schema::{self, atomic_list, list_map, rule, set};

/// Which load balancer is reached, and from where.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "GCPPrivateServiceConnect",
    root = "GcpPrivateServiceConnect",
    doc = "How Private Service Connect of Google Cloud leads from a hosted cluster's network to its control plane.",
    namespaced,
    status = "GcpPrivateServiceConnectStatus",
    derive = "PartialEq",
    shortname = "gcppsc",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(
        name = "Service Attachment",
        type_ = "string",
        json_path = ".status.serviceAttachmentName"
    ),
    printcolumn(
        name = "Endpoint IP",
        type_ = "string",
        json_path = ".status.endpointIP"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="GCPEndpointAvailable")].status"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct GcpPrivateServiceConnectSpec {
    /// The address of the internal load balancer that the service attachment is made for.
    #[serde(rename = "loadBalancerIP")]
    #[schemars(
        length(min = 1, max = 39),
        transform = rule("isIP(self)", "loadBalancerIP must be an IPv4 or IPv6 address"),
    )]
    pub load_balancer_ip: String,
    /// The forwarding rule of that load balancer. Filled in once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), transform = resource_name)]
    pub forwarding_rule_name: Option<String>,
    /// Projects that may connect, by their IDs or numbers.
    #[schemars(length(min = 1, max = 50), transform = set)]
    pub consumer_accept_list: Vec<GcpConsumerProject>,
    /// The subnet in the management cluster's network from which the service attachment takes addresses. Unset: one that
    /// is free is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), transform = resource_name)]
    pub nat_subnet: Option<String>,
}

/// A project, by its ID or number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule(
    "self.matches('^([0-9]{1,30}|[a-z][-0-9a-z]{4,28}[0-9a-z])$')",
    "consumerAcceptList must have IDs or numbers of projects"
))]
pub struct GcpConsumerProject(#[schemars(length(min = 1, max = 30))] pub String);

/// What was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpPrivateServiceConnectStatus {
    /// Whether each part of the connection is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(min = 1, max = 10),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
    /// The service attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub service_attachment_name: Option<String>,
    /// The full name of the service attachment.
    #[serde(
        rename = "serviceAttachmentURI",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(max = 2048),
        transform = rule(
            "self.matches('^projects/[a-z][-0-9a-z]{4,28}[0-9a-z]/regions/[a-z]+-[a-z]+[0-9]+/serviceAttachments/[a-z]([-0-9a-z]*[0-9a-z])?$')",
            "serviceAttachmentURI must be of the form projects/<project>/regions/<region>/serviceAttachments/<name>"
        ),
    )]
    pub service_attachment_uri: Option<String>,
    /// The address in the network of the nodes under which the control plane is reached.
    #[serde(
        rename = "endpointIP",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 3, max = 39),
        transform = rule("isIP(self)", "endpointIP must be an IPv4 or IPv6 address"),
    )]
    pub endpoint_ip: Option<String>,
    /// The DNS zones that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 5), transform = atomic_list)]
    pub dns_zones: Vec<GcpDnsZone>,
}

/// A DNS zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcpDnsZone {
    /// The name of the zone.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The names of its records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 10), inner(length(max = 253)), transform = atomic_list)]
    pub records: Vec<String>,
}

impl Kind for GcpPrivateServiceConnect {
    const DESCRIPTION: &'static str = "How Private Service Connect of Google Cloud leads from a hosted cluster's network to its control plane. Made by the control plane operator.";
}
