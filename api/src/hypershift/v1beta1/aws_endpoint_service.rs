//! How AWS's private link leads from a hosted cluster's network to its control plane.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::AwsResourceTag;
use crate::crds::Kind;
use crate::schema::{self, list_map};

/// Which load balancer is reached, and from where.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "AWSEndpointService",
    root = "AwsEndpointService",
    doc = "How AWS's private link leads from a hosted cluster's network to its control plane.",
    namespaced,
    status = "AwsEndpointServiceStatus",
    derive = "PartialEq",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AwsEndpointServiceSpec {
    /// The network load balancer that the endpoint service is made for, in the account of the management cluster.
    #[schemars(length(max = 255))]
    pub network_load_balancer_name: String,
    /// The subnets that get an endpoint, in the network of the hosted cluster.
    #[serde(rename = "subnetIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 63)))]
    pub subnet_ids: Vec<String>,
    /// Tags of the endpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 25))]
    pub resource_tags: Vec<AwsResourceTag>,
}

/// What was made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsEndpointServiceStatus {
    /// The name of the endpoint service, in the account of the management cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub endpoint_service_name: Option<String>,
    /// The id of the endpoint, in the account of the hosted cluster.
    #[serde(
        rename = "endpointID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub endpoint_id: Option<String>,
    /// The names under which the endpoint is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 253)))]
    pub dns_names: Vec<String>,
    /// The id of the private DNS zone that holds those names.
    #[serde(rename = "dnsZoneID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub dns_zone_id: Option<String>,
    /// The id of the endpoint's security group.
    #[serde(
        rename = "securityGroupID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub security_group_id: Option<String>,
    /// Whether the endpoint service and the endpoint are there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(max = 10),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
}

impl Kind for AwsEndpointService {
    const DESCRIPTION: &'static str = "How AWS's private link leads from a hosted cluster's network to its control plane. Made by the control plane operator.";
}
