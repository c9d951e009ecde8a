//! Address ranges of the hosted cluster and how its API server is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, rule, set};

/// An address block in CIDR notation, IPv4 or IPv6.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^([0-9]{1,3}[.]){3}[0-9]{1,3}/[0-9]{1,2}$') || \
         self.matches('^([[:xdigit:]]{0,4}:){2,7}[[:xdigit:]]{0,4}/[0-9]{1,3}$')",
        "an address range must be an address block in CIDR notation, for example 10.132.0.0/14 or \
         fd01::/48"
    ),
)]
pub struct Cidr(#[schemars(length(max = 43))] pub String);

/// Address ranges and network provider of a hosted cluster.
/// The ranges must not equal one another, and should not overlap networks that the nodes reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.clusterNetwork.all(pods, !self.serviceNetwork.exists(services, services.cidr == \
         pods.cidr)) && (!has(self.machineNetwork) || \
         self.machineNetwork.all(nodes, !self.clusterNetwork.exists(pods, pods.cidr == nodes.cidr) \
         && !self.serviceNetwork.exists(services, services.cidr == nodes.cidr)))",
        "clusterNetwork, serviceNetwork and machineNetwork must not share an address block; give \
         each a CIDR of its own"
    ),
    transform = rule(
        "!has(self.allocateNodeCIDRs) || self.allocateNodeCIDRs != 'Enabled' || \
         self.networkType == 'Other'",
        "allocateNodeCIDRs may be Enabled only with networkType Other; remove it, or set \
         networkType to Other and bring your own network provider"
    ),
)]
pub struct ClusterNetworking {
    /// Network provider of the pods, `OVNKubernetes` unless said otherwise.
    /// `OpenShiftSDN` exists in releases up to 4.14 only, `Calico` is installed by the administrator of the
    /// cluster, and `Other` leaves networking entirely to a provider of your own.
    #[serde(default)]
    pub network_type: NetworkType,
    /// Address ranges of the pods: one, or one of each IP family for a dual-stack cluster.
    /// They cannot be changed later.
    #[serde(default = "default_cluster_network")]
    #[schemars(
        length(min = 1, max = 2),
        transform = immutable(
            "pod address ranges are fixed when the cluster is created; create a new cluster to use \
             other ones"
        ),
    )]
    pub cluster_network: Vec<ClusterNetworkEntry>,
    /// Address ranges of Services: one, or one of each IP family for a dual-stack cluster.
    /// They cannot be changed later.
    #[serde(default = "default_service_network")]
    #[schemars(
        length(min = 1, max = 2),
        transform = immutable(
            "Service address ranges are fixed when the cluster is created; create a new cluster to \
             use other ones"
        ),
    )]
    pub service_network: Vec<ServiceNetworkEntry>,
    /// Address ranges from which the nodes get their addresses, so that proxies and firewalls know
    /// them: one, or one of each IP family.
    /// They cannot be changed later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 2),
        transform = immutable(
            "node address ranges are fixed when the cluster is created; create a new cluster to \
             use other ones"
        ),
    )]
    pub machine_network: Vec<MachineNetworkEntry>,
    /// Whether kube-controller-manager assigns a part of the cluster network to each node.
    /// `Enabled` is for network providers that expect it (such as Flannel) and needs `networkType:
    /// Other`; without a value it is off.
    #[serde(rename = "allocateNodeCIDRs", skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "whether nodes get pod ranges from the controller manager is fixed when the cluster is \
             created"
        ),
    )]
    pub allocate_node_cidrs: Option<AllocateNodeCidrs>,
    /// How the API server is reached from inside the hosted cluster, and from where it may be
    /// reached at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServerNetworking>,
}

/// A range of pod addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetworkEntry {
    /// The range, for example `10.132.0.0/14`.
    pub cidr: Cidr,
    /// Length of the prefix that each node receives out of the range; 23 gives a node 510
    /// addresses.
    /// Without a value the network provider decides. Providers that do not divide the range by node
    /// ignore it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_prefix: Option<i32>,
}

/// A range of Service addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceNetworkEntry {
    /// The range, for example `172.31.0.0/16`.
    pub cidr: Cidr,
}

/// A range of node addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineNetworkEntry {
    /// The range, for example `10.0.0.0/16`.
    pub cidr: Cidr,
}

/// How the API server of a hosted cluster is reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiServerNetworking {
    /// Address that nodes use for the API server; the proxy on each node listens on it, so it must
    /// not be in use in any of the cluster's networks.
    /// Without a value it is 172.20.0.1, or fd00::1 for IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the advertise address is fixed when the cluster is created; leave it as it is"
        ),
    )]
    pub advertise_address: Option<String>,
    /// Port of the API server as pods on the nodes see it. Without a value it is 6443.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "the API server's port is fixed when the cluster is created; leave it as it is"
        ),
    )]
    pub port: Option<i32>,
    /// Address ranges from which the API server may be reached; nothing listed means from
    /// everywhere.
    /// Include the addresses of the nodes and of the administrators of the cluster. It can be changed
    /// at any time.
    #[serde(
        rename = "allowedCIDRBlocks",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 500), transform = set)]
    pub allowed_cidr_blocks: Vec<Cidr>,
}

/// A network provider for pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NetworkType {
    /// OpenShift SDN, in releases up to 4.14.
    #[serde(rename = "OpenShiftSDN")]
    OpenShiftSdn,
    /// Calico, installed by the administrator of the cluster.
    Calico,
    /// OVN-Kubernetes.
    #[default]
    #[serde(rename = "OVNKubernetes")]
    OvnKubernetes,
    /// A provider that the cluster's owner brings along.
    Other,
}

/// Whether kube-controller-manager assigns pod ranges to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AllocateNodeCidrs {
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
}

fn default_cluster_network() -> Vec<ClusterNetworkEntry> {
    vec![ClusterNetworkEntry {
        cidr: Cidr("10.132.0.0/14".into()),
        host_prefix: None,
    }]
}

fn default_service_network() -> Vec<ServiceNetworkEntry> {
    vec![ServiceNetworkEntry {
        cidr: Cidr("172.31.0.0/16".into()),
    }]
}

impl Default for ClusterNetworking {
    fn default() -> Self {
        Self {
            network_type: NetworkType::default(),
            cluster_network: default_cluster_network(),
            service_network: default_service_network(),
            machine_network: Vec::new(),
            allocate_node_cidrs: None,
            api_server: None,
        }
    }
}
