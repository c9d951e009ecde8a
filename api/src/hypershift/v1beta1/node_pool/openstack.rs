//! Machines on OpenStack. They are part of the technology preview.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::platform::openstack::OpenStackNetworkParam;

/// Machines on OpenStack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackNodePoolPlatform {
    /// The flavor of the machines: their processors, memory and disk.
    #[schemars(length(max = 255))]
    pub flavor: String,
    /// The name of the image that machines start from. Unset: the one that belongs to the release, which is uploaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub image_name: Option<String>,
    /// The availability zone of the machines. Unset: the default of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[^: ]*$"))]
    pub availability_zone: Option<String>,
    /// Ports that machines have in addition to the one in the network of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub additional_ports: Vec<OpenStackPortSpec>,
}

/// A port of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackPortSpec {
    /// The network of the port. Unset: that of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<OpenStackNetworkParam>,
    /// What the port is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub description: Option<String>,
    /// Addresses beside its own that traffic of the port may come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub allowed_address_pairs: Vec<OpenStackAddressPair>,
    /// How the port is connected to the host, such as `normal` or `direct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub vnic_type: Option<String>,
    /// Whether security groups and anti-spoofing apply to the port. Unset: what is set for the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_security_policy: Option<OpenStackPortSecurityPolicy>,
}

/// An address that traffic of a port may come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackAddressPair {
    /// The address, or a range of addresses.
    #[schemars(length(max = 255))]
    pub ip_address: String,
}

/// Whether security groups and anti-spoofing apply to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OpenStackPortSecurityPolicy {
    /// They apply.
    Enabled,
    /// They do not apply.
    Disabled,
    /// As it is set for the network.
    #[serde(rename = "")]
    Unset,
}
