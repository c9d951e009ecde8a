//! Settings of the cluster network operator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, rule, with};

/// Settings of the cluster network operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.ovnKubernetesConfig) || !has(oldSelf.ovnKubernetesConfig)",
        "ovnKubernetesConfig cannot be removed; put back the settings that it had"
    ),
)]
pub struct ClusterNetworkOperatorSpec {
    /// Whether Multus is left out, so that pods have one network only.
    /// It requires networkType `Other`, and is immutable after the cluster is created.
    #[serde(default)]
    #[schemars(
        transform = immutable(
            "whether Multus is left out is decided when the cluster is created; leave it as it is"
        ),
    )]
    pub disable_multi_network: bool,
    /// Settings of OVN-Kubernetes, when it is the network provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ovn_kubernetes_config: Option<OvnKubernetesConfig>,
}

/// Settings of OVN-Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = with("minProperties", 1),
    transform = rule(
        "!has(self.ipv4) || !(has(self.ipv4.internalJoinSubnet) && \
         has(self.ipv4.internalTransitSwitchSubnet)) || \
         self.ipv4.internalTransitSwitchSubnet != self.ipv4.internalJoinSubnet",
        "ipv4.internalJoinSubnet and ipv4.internalTransitSwitchSubnet must differ; choose another \
         range for one of them"
    ),
    transform = rule(
        "!has(self.ipv6) || !(has(self.ipv6.internalJoinSubnet) && \
         has(self.ipv6.internalTransitSwitchSubnet)) || \
         self.ipv6.internalTransitSwitchSubnet != self.ipv6.internalJoinSubnet",
        "ipv6.internalJoinSubnet and ipv6.internalTransitSwitchSubnet must differ; choose another \
         range for one of them"
    ),
    transform = rule(
        "has(self.mtu) || !has(oldSelf.mtu)",
        "mtu cannot be removed; put back the value that it had"
    ),
    transform = rule(
        "has(self.ipv6) || !has(oldSelf.ipv6)",
        "ipv6 cannot be removed; put back the settings that it had"
    ),
    transform = rule(
        "!(has(oldSelf.ipv6) && has(oldSelf.ipv6.internalJoinSubnet)) || \
         (has(self.ipv6) && has(self.ipv6.internalJoinSubnet))",
        "ipv6.internalJoinSubnet cannot be removed; put back the value that it had"
    ),
    transform = rule(
        "!(has(oldSelf.ipv6) && has(oldSelf.ipv6.internalTransitSwitchSubnet)) || \
         (has(self.ipv6) && has(self.ipv6.internalTransitSwitchSubnet))",
        "ipv6.internalTransitSwitchSubnet cannot be removed; put back the value that it had"
    ),
    transform = rule(
        "has(self.v4InternalSubnet) || !has(oldSelf.v4InternalSubnet)",
        "v4InternalSubnet cannot be removed; put back the value that it had"
    ),
    transform = rule(
        "has(self.v6InternalSubnet) || !has(oldSelf.v6InternalSubnet)",
        "v6InternalSubnet cannot be removed; put back the value that it had"
    ),
)]
pub struct OvnKubernetesConfig {
    /// Internal ranges for IPv4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<OvnIpv4Config>,
    /// Internal ranges for IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6: Option<OvnIpv6Config>,
    /// Largest packet, in bytes, that pods send on the overlay network.
    /// Without a value it is derived from the nodes' interfaces. It cannot be changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        range(min = 576, max = 9216),
        transform = immutable(
            "the MTU of the overlay network is fixed once it is set; put back the value that it \
             had"
        ),
    )]
    pub mtu: Option<i32>,
    /// Range of IPv4 addresses that OVN-Kubernetes uses for itself on releases that do not know
    /// `ipv4.internalJoinSubnet`.
    /// It must not overlap any other network, and hold at least one address for each node. Without
    /// a value it is 100.64.0.0/16.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 9, max = 18),
        transform = immutable(
            "the internal range is fixed once it is set; put back the value that it had"
        ),
        transform = rule(
            "isCIDR(self) && cidr(self).ip().family() != 6",
            "v4InternalSubnet must be an IPv4 range in CIDR notation, such as 100.64.0.0/16"
        ),
        transform = rule(
            "isCIDR(self) && !(cidr(self).prefixLength() > 30)",
            "the range is too small; its prefix must be /30 or shorter"
        ),
        transform = rule(
            "isCIDR(self) && cidr(self).ip().family() != 6 && !self.matches('^0+[.]')",
            "the range must not begin with 0; choose one such as 100.64.0.0/16"
        ),
    )]
    pub v4_internal_subnet: Option<String>,
    /// Range of IPv6 addresses that OVN-Kubernetes uses for itself on releases that do not know
    /// `ipv6.internalJoinSubnet`.
    /// It must not overlap any other network, and hold at least one address for each node. Without
    /// a value it is fd98::/64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 4, max = 48),
        transform = immutable(
            "the internal range is fixed once it is set; put back the value that it had"
        ),
        transform = rule(
            "isCIDR(self) && cidr(self).ip().family() != 4",
            "v6InternalSubnet must be an IPv6 range in CIDR notation, such as fd98::/64"
        ),
        transform = rule(
            "isCIDR(self) && !(cidr(self).prefixLength() > 125)",
            "the range is too small; its prefix must be /125 or shorter"
        ),
    )]
    pub v6_internal_subnet: Option<String>,
}

/// Internal ranges of OVN-Kubernetes for IPv4.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OvnIpv4Config {
    /// Range for the switch that joins the nodes' parts of the network; it must not overlap any
    /// other network, and hold one address for each node.
    /// Without a value it is 100.88.0.0/16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_transit_switch_subnet: Option<OvnIpv4Subnet>,
    /// Range for the routers within each node; it must not overlap any other network, and hold one
    /// address for each node.
    /// Without a value it is 100.64.0.0/16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_join_subnet: Option<OvnIpv4Subnet>,
}

/// An IPv4 range that OVN-Kubernetes uses for itself.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "self.matches('^[0-9]{1,3}([.][0-9]{1,3}){3}/([12]?[0-9]|3[0-2])$') && \
         self.split('/')[0].split('.').all(part, int(part) < 256)",
        "the range must be an IPv4 range in CIDR notation, such as 100.64.0.0/16"
    ),
    transform = rule(
        "self.matches('/[0-9]+$') && int(self.split('/')[1]) < 31",
        "the range is too small; its prefix must be /30 or shorter"
    ),
    transform = rule(
        "self.matches('^[0-9]{1,3}[.]') && int(self.split('.')[0]) != 0",
        "the range must not begin with 0; choose one such as 100.64.0.0/16"
    ),
)]
pub struct OvnIpv4Subnet(#[schemars(length(min = 9, max = 18))] pub String);

/// Internal ranges of OVN-Kubernetes for IPv6. They cannot be changed later.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct OvnIpv6Config {
    /// Range for the switch that joins the nodes' parts of the network; it must not overlap any
    /// other network, and hold one address for each node.
    /// Without a value it is fd97::/64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_transit_switch_subnet: Option<OvnIpv6Subnet>,
    /// Range for the routers within each node; it must not overlap any other network, and hold one
    /// address for each node.
    /// Without a value it is fd98::/64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_join_subnet: Option<OvnIpv6Subnet>,
}

/// An IPv6 range that OVN-Kubernetes uses for itself.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(
    transform = rule(
        "isCIDR(self) && cidr(self).ip().family() != 4",
        "the range must be an IPv6 range in CIDR notation, such as fd98::/64"
    ),
    transform = rule(
        "isCIDR(self) && !(cidr(self).prefixLength() > 125)",
        "the range is too small; its prefix must be /125 or shorter"
    ),
    transform = immutable(
        "the internal range is fixed once it is set; put back the value that it had"
    ),
)]
pub struct OvnIpv6Subnet(#[schemars(length(min = 3, max = 48))] pub String);
