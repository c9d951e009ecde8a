//! Platforms of machines, with those that have few fields.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AwsNodePoolPlatform, AzureNodePoolPlatform, GcpNodePoolPlatform, KubevirtNodePoolPlatform,
    OpenStackNodePoolPlatform,
};
use crate::hypershift::v1beta1::platform::PlatformType;
use crate::hypershift::v1beta1::platform::ibm_cloud::IbmCloudPlatformSpec;
use crate::hypershift::v1beta1::platform::power_vs::PowerVsResourceReference;
use crate::schema::{self, immutable, tech_preview};

/// The platform of the machines, and their configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodePoolPlatform {
    /// The platform of the machines, which is that of the hosted cluster. The field of that name has the details.
    #[serde(rename = "type")]
    #[schemars(
        transform = schema::with("maxLength", 100),
        transform = immutable("platform.type cannot change: create a NodePool on the other platform"),
    )]
    pub type_: PlatformType,
    /// Machines on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsNodePoolPlatform>,
    /// Machines on Azure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureNodePoolPlatform>,
    /// Machines on IBM Cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ibmcloud: Option<IbmCloudPlatformSpec>,
    /// Machines on KubeVirt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubevirt: Option<KubevirtNodePoolPlatform>,
    /// Machines that the assisted installer's agents have found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentNodePoolPlatform>,
    /// Machines on IBM Power Virtual Server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub powervs: Option<PowerVsNodePoolPlatform>,
    /// Machines on OpenStack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub openstack: Option<OpenStackNodePoolPlatform>,
    /// Machines on Google Cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub gcp: Option<GcpNodePoolPlatform>,
}

/// Machines that the assisted installer's agents have found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentNodePoolPlatform {
    /// The labels of the agents that may be taken. Unset takes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub agent_label_selector: Option<LabelSelector>,
}

/// Machines on IBM Power Virtual Server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerVsNodePoolPlatform {
    /// The hardware, such as `s922` or `e980`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), extend("default" = "s922"))]
    pub system_type: Option<String>,
    /// Whether a machine has its processors for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "shared"))]
    pub processor_type: Option<PowerVsProcessorType>,
    /// The number of processors; fractions are for those that are shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::IntOrString>", extend("default" = "0.5"))]
    pub processors: Option<IntOrString>,
    /// The memory in GiB.
    #[serde(rename = "memoryGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 32))]
    pub memory_gib: Option<i32>,
    /// The image that machines start from. Unset: the one that belongs to the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PowerVsResourceReference>,
    /// The speed of the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "tier1"))]
    pub storage_type: Option<PowerVsStorageType>,
    /// What becomes of the image when the pool is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "delete"))]
    pub image_delete_policy: Option<PowerVsImageDeletePolicy>,
}

/// Whether a machine has its processors for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerVsProcessorType {
    /// It has.
    Dedicated,
    /// They are shared with others, and more than requested may be available.
    Shared,
    /// They are shared with others, and never more than requested is available.
    Capped,
}

/// The speed of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerVsStorageType {
    /// The faster one.
    Tier1,
    /// The slower one.
    Tier3,
}

/// What becomes of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PowerVsImageDeletePolicy {
    /// It is removed.
    Delete,
    /// It is kept.
    Retain,
}
