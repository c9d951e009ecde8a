//! External addresses, node ports and network diagnostics.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, atomic_list, rule};

/// Network settings beyond those of `spec.networking`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.networkDiagnostics) || !has(self.networkDiagnostics.mode) || \
         self.networkDiagnostics.mode != 'Disabled' || \
         !(has(self.networkDiagnostics.sourcePlacement) || \
         has(self.networkDiagnostics.targetPlacement))",
        "network diagnostics that are Disabled have no placement; remove sourcePlacement and \
         targetPlacement, or change mode"
    ),
)]
pub struct NetworkConfiguration {
    /// Not used for hosted clusters: `spec.networking.clusterNetwork` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub cluster_network: Vec<NetworkClusterNetworkEntry>,
    /// Not used for hosted clusters: `spec.networking.serviceNetwork` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = atomic_list)]
    pub service_network: Vec<String>,
    /// Not used for hosted clusters: `spec.networking.networkType` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<String>,
    /// Which external addresses Services may have. Without it, they may have none.
    #[serde(rename = "externalIP", skip_serializing_if = "Option::is_none")]
    pub external_ip: Option<ExternalIpConfig>,
    /// Ports of nodes for Services of type NodePort, as `<first>-<last>`. Without a value it is
    /// 30000-32767.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = "^([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])-([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$"
    ))]
    pub service_node_port_range: Option<String>,
    /// Checks of the connections between nodes, API server and load balancers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_diagnostics: Option<NetworkDiagnostics>,
}

/// A range of pod addresses. It has no effect for hosted clusters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkClusterNetworkEntry {
    /// The range, in CIDR notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// Length of the prefix that each node receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub host_prefix: Option<i32>,
}

/// External addresses of Services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalIpConfig {
    /// Addresses that Services may request. Without it, they may request none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExternalIpPolicy>,
    /// Address ranges, in CIDR notation, out of which Services of type LoadBalancer get an address
    /// by themselves. OpenShift works with one.
    #[serde(
        rename = "autoAssignCIDRs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(transform = atomic_list)]
    pub auto_assign_cidrs: Vec<String>,
}

/// External addresses that Services may request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalIpPolicy {
    /// Address ranges that are allowed, in CIDR notation.
    #[serde(
        rename = "allowedCIDRs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(transform = atomic_list)]
    pub allowed_cidrs: Vec<String>,
    /// Address ranges that are not allowed, in CIDR notation. They go before those that are.
    #[serde(
        rename = "rejectedCIDRs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(transform = atomic_list)]
    pub rejected_cidrs: Vec<String>,
}

/// Checks of connections in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDiagnostics {
    /// Whether the checks run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<NetworkDiagnosticsMode>,
    /// Nodes for the pod that checks. Without it, it may run on any Linux node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_placement: Option<NetworkDiagnosticsPlacement>,
    /// Nodes for the pods that are checked. Without it, they run on all Linux nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_placement: Option<NetworkDiagnosticsPlacement>,
}

/// Nodes for pods of the network checks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkDiagnosticsPlacement {
    /// Labels that the nodes must have. `kubernetes.io/os: linux` is the usual one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Toleration>", transform = atomic_list)]
    pub tolerations: Vec<Toleration>,
}

/// Whether network checks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NetworkDiagnosticsMode {
    /// As if nothing were said: they do.
    #[serde(rename = "")]
    Unset,
    /// They do.
    All,
    /// They do not.
    Disabled,
}
