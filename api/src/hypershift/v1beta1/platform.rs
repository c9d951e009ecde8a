//! The infrastructure that a hosted cluster's nodes run on.

pub mod agent;
pub mod aws;
pub mod azure;
pub mod gcp;
pub mod ibm_cloud;
pub mod kubevirt;
pub mod openstack;
pub mod power_vs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::features::FeatureSet;
use crate::hypershift::v1beta1::platform::agent::AgentPlatformSpec;
use crate::hypershift::v1beta1::platform::aws::AwsPlatformSpec;
use crate::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use crate::hypershift::v1beta1::platform::gcp::GcpPlatformSpec;
use crate::hypershift::v1beta1::platform::ibm_cloud::IbmCloudPlatformSpec;
use crate::hypershift::v1beta1::platform::kubevirt::KubevirtPlatformSpec;
use crate::hypershift::v1beta1::platform::openstack::OpenStackPlatformSpec;
use crate::hypershift::v1beta1::platform::power_vs::PowerVsPlatformSpec;
use crate::schema::{immutable, tech_preview, with};

/// The ConfigMap with the configuration of the cloud provider on Azure.
const AZURE_CLOUD_CONFIG: &str = "azure-cloud-config";
/// The same on OpenStack.
const OPENSTACK_CLOUD_CONFIG: &str = "openstack-cloud-config";

/// The infrastructure of a hosted cluster, with what that infrastructure needs to know.
/// Fill in the member that belongs to `type`; `None` has none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformSpec {
    /// Which infrastructure it is.
    /// It decides how nodes are made and which cloud integrations run, and cannot be changed later.
    #[serde(rename = "type")]
    #[schemars(
        transform = with("maxLength", 100),
        transform = immutable(
            "the platform is chosen once; create a new cluster to move to another one"
        ),
    )]
    pub type_: PlatformType,
    /// Settings for nodes that an Agent service provides, when `type` is `Agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentPlatformSpec>,
    /// Settings for AWS, when `type` is `AWS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsPlatformSpec>,
    /// Settings for Azure, when `type` is `Azure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzurePlatformSpec>,
    /// Settings for IBM Cloud, when `type` is `IBMCloud`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ibmcloud: Option<IbmCloudPlatformSpec>,
    /// Settings for virtual machines by KubeVirt, when `type` is `KubeVirt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubevirt: Option<KubevirtPlatformSpec>,
    /// Settings for IBM Power Virtual Server, when `type` is `PowerVS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub powervs: Option<PowerVsPlatformSpec>,
    /// Settings for OpenStack, when `type` is `OpenStack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub openstack: Option<OpenStackPlatformSpec>,
    /// Settings for Google Cloud, when `type` is `GCP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub gcp: Option<GcpPlatformSpec>,
}

/// An infrastructure for nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PlatformType {
    /// Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Microsoft Azure.
    Azure,
    /// IBM Cloud.
    #[serde(rename = "IBMCloud")]
    IbmCloud,
    /// Virtual machines on a cluster with KubeVirt.
    KubeVirt,
    /// Machines that an Agent service discovers.
    Agent,
    /// IBM Power Virtual Server.
    #[serde(rename = "PowerVS")]
    PowerVs,
    /// Users provide the nodes.
    None,
    /// OpenStack.
    #[schemars(transform = tech_preview)]
    OpenStack,
    /// Google Cloud.
    #[serde(rename = "GCP")]
    #[schemars(transform = tech_preview)]
    Gcp,
}

impl PlatformType {
    /// What [`Self::cloud_config_map`] returns on any platform.
    pub const CLOUD_CONFIG_MAPS: [&'static str; 2] = [AZURE_CLOUD_CONFIG, OPENSTACK_CLOUD_CONFIG];

    /// The feature set that has the platform.
    pub fn features(self) -> FeatureSet {
        match self {
            Self::OpenStack | Self::Gcp => FeatureSet::TechPreviewNoUpgrade,
            Self::Aws
            | Self::Azure
            | Self::IbmCloud
            | Self::KubeVirt
            | Self::Agent
            | Self::PowerVs
            | Self::None => FeatureSet::Default,
        }
    }

    /// The ConfigMap of the control plane with the configuration of the cloud provider, where ignition payloads include it.
    pub fn cloud_config_map(self) -> Option<&'static str> {
        match self {
            Self::Azure => Some(AZURE_CLOUD_CONFIG),
            Self::OpenStack => Some(OPENSTACK_CLOUD_CONFIG),
            Self::Agent
            | Self::Aws
            | Self::Gcp
            | Self::IbmCloud
            | Self::KubeVirt
            | Self::None
            | Self::PowerVs => None,
        }
    }
}
