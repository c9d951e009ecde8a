//! How the default ingress controller of a hosted cluster is published.

pub mod load_balancer;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hypershift::v1beta1::operator_configuration::ingress::load_balancer::LoadBalancerStrategy;
use crate::schema::preserve_unknown;

/// Settings of the ingress operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressOperatorSpec {
    /// How the routers of the default ingress controller are reached.
    /// It is read when the cluster is created; later the IngressController in the hosted cluster is
    /// the place to change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_publishing_strategy: Option<EndpointPublishingStrategy>,
}

/// How the routers of an ingress controller are reached.
/// Fill in the member that belongs to `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = preserve_unknown)]
pub struct EndpointPublishingStrategy {
    /// The way in which they are reached.
    #[serde(rename = "type")]
    pub type_: EndpointPublishingStrategyType,
    /// The load balancer, when `type` is `LoadBalancerService`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerStrategy>,
    /// Ports on the nodes, when `type` is `HostNetwork`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_network: Option<HostNetworkStrategy>,
    /// When `type` is `Private`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<PrivateStrategy>,
    /// When `type` is `NodePortService`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_port: Option<NodePortStrategy>,
    /// Members that are not known here. They are passed on as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// Routers that use the network of the nodes that they run on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostNetworkStrategy {
    /// How a router learns the address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IngressProtocol>,
    /// Port for HTTP on the node. It must be free on every node that runs a router.
    #[serde(default = "http_port")]
    #[schemars(range(min = 0, max = 65_535))]
    pub http_port: i32,
    /// Port for HTTPS on the node. It must be free on every node that runs a router.
    #[serde(default = "https_port")]
    #[schemars(range(min = 0, max = 65_535))]
    pub https_port: i32,
    /// Port for health checks and statistics on the node. It must be free on every node that runs a
    /// router.
    #[serde(default = "stats_port")]
    #[schemars(range(min = 0, max = 65_535))]
    pub stats_port: i32,
}

/// Routers that are reached from inside the cluster only.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrivateStrategy {
    /// How a router learns the address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IngressProtocol>,
}

/// Routers behind a port of every node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePortStrategy {
    /// How a router learns the address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<IngressProtocol>,
}

/// A way to reach the routers of an ingress controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EndpointPublishingStrategyType {
    /// By a load balancer of the cloud.
    LoadBalancerService,
    /// By ports of the nodes that they run on.
    HostNetwork,
    /// From inside the cluster only.
    Private,
    /// By a port of every node.
    NodePortService,
}

/// How a router learns the address of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum IngressProtocol {
    /// As if nothing were said: TCP.
    #[serde(rename = "")]
    Unset,
    /// From the connection itself.
    #[serde(rename = "TCP")]
    Tcp,
    /// From the PROXY protocol, which the load balancer in front must speak.
    #[serde(rename = "PROXY")]
    Proxy,
}

fn http_port() -> i32 {
    80
}

fn https_port() -> i32 {
    443
}

fn stats_port() -> i32 {
    1936
}
