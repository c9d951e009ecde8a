//! What a pool is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OsImageStream;
use crate::hypershift::v1beta1::platform::kubevirt::KubevirtPlatformCredentials;
use crate::schema::{self, atomic_list, rule, tech_preview};

/// What the pool is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// How many nodes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The version that all nodes run. While they are upgraded it is the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// Status that is specific to a platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<NodePoolPlatformStatus>,
    /// Conditions of the pool: its progress, and what blocks it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub conditions: Vec<NodePoolCondition>,
    /// What runs on the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes_info: Option<NodesInfo>,
    /// The operating system that most of the nodes have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub os_image_stream: Option<OsImageStream>,
}

/// Status that is specific to a platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolPlatformStatus {
    /// KubeVirt's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_virt: Option<KubevirtNodePoolStatus>,
}

/// Status that is specific to KubeVirt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtNodePoolStatus {
    /// The volume that keeps the image at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub cache_name: Option<String>,
    /// How the cluster is reached that the virtual machines run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<KubevirtPlatformCredentials>,
}

/// One aspect of a pool's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolCondition {
    /// Which aspect this is about.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub type_: String,
    /// Whether it is the case: True, False or Unknown.
    pub status: String,
    /// How bad it is where the status is False: Error, Warning or Info.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub severity: Option<String>,
    /// When the status last changed.
    #[schemars(with = "schema::Time")]
    pub last_transition_time: Time,
    /// The reason as one word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
    /// A human-readable message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// The generation of the pool that this was found for; an older one means that the condition is out of date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// What runs on the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodesInfo {
    /// The versions that nodes run, and how many run each.
    #[schemars(length(min = 1, max = 100), transform = atomic_list)]
    pub node_versions: Vec<NodeVersion>,
}

/// A version that nodes run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeVersion {
    /// The OpenShift version.
    #[schemars(
        length(min = 1, max = 64),
        transform = rule(
            r"self.matches(r'^\d+[.]\d+[.]\d+.*$')",
            "ocpVersion must be a version such as 4.20.1"
        ),
    )]
    pub ocp_version: String,
    /// The kubelet's version.
    #[schemars(
        length(min = 1, max = 64),
        transform = rule(
            r"self.matches(r'^v?\d+[.]\d+[.]\d+.*$')",
            "kubeletVersion must be a version such as v1.33.4"
        ),
    )]
    pub kubelet_version: String,
    /// How many of the nodes are ready.
    #[schemars(range(min = 0))]
    pub ready_node_count: i32,
    /// How many of the nodes are not ready.
    #[schemars(range(min = 0))]
    pub unready_node_count: i32,
}
