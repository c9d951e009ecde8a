//! The sizes of hosted control planes, and what follows from a size.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::hypershift::v1beta1::common::{Duration, Quantity};
use crate::schema::{self, list_map, no_format, rule};

/// The sizes, and how clusters go from one to another.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "scheduling.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "ClusterSizingConfiguration",
    doc = "The sizes of hosted control planes, and what follows from a size.",
    status = "ClusterSizingConfigurationStatus",
    derive = "PartialEq",
    shortname = "csc",
    shortname = "cscs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSizingConfigurationSpec {
    /// The sizes. Together they cover every number of nodes: one begins at zero, and one has no end.
    #[schemars(
        transform = list_map(["name"]),
        transform = rule(
            "self.filter(size, size.criteria.from == 0).size() == 1",
            "exactly one size must begin at zero nodes: set criteria.from of the smallest one to 0"
        ),
        transform = rule(
            "self.filter(size, !has(size.criteria.to)).size() == 1",
            "exactly one size must have no upper end: remove criteria.to of the largest one"
        ),
    )]
    pub sizes: Vec<SizeConfiguration>,
    /// How many clusters may change their size at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<ConcurrencyConfiguration>,
    /// How long a cluster keeps its size after another one would fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transition_delay: Option<TransitionDelayConfiguration>,
    /// How many nodes are kept ready in each zone, beyond those in use, for what does not serve requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_request_serving_nodes_buffer_per_zone: Option<Quantity>,
    /// How sizes follow from what API servers use, for clusters that are sized so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_based_autoscaling: Option<ResourceBasedAutoscalingConfiguration>,
}

/// A size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeConfiguration {
    /// The size's name, which clusters of this size have as a label.
    pub name: String,
    /// Which clusters have this size.
    pub criteria: SizeCriteria,
    /// What follows for clusters of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
    /// How the management cluster prepares for clusters of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<Management>,
    /// What an API server of this size may use, where sizes follow from what API servers use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<SizeCapacity>,
}

/// Which clusters have a size, by their number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule(
    "!has(self.to) || self.to >= self.from",
    "to must not be less than from: raise to or lower from"
))]
pub struct SizeCriteria {
    /// The smallest number of nodes.
    #[schemars(range(min = 0))]
    pub from: i32,
    /// The largest number of nodes. Unset: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub to: Option<i32>,
}

/// What an API server may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCapacity {
    /// The memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    /// The processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
}

/// What follows from a size for a control plane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// At how much memory the API server begins to collect garbage harder, such as `4GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^\d+(B|KiB|MiB|GiB|TiB)?$"))]
    pub kas_go_mem_limit: Option<String>,
    /// The priority class of what does not serve requests and keeps no state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_priority_class_name: Option<String>,
    /// The priority class of etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd_priority_class_name: Option<String>,
    /// The priority class of what serves the API.
    #[serde(
        rename = "APICriticalPriorityClassName",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub api_critical_priority_class_name: Option<String>,
    /// Resource requests of containers, instead of the default ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_requests: Vec<ResourceRequest>,
    /// How long a node may be unhealthy before its machine is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_health_check_timeout: Option<Duration>,
    /// How many reading requests the API server works on at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = no_format)]
    pub maximum_requests_inflight: Option<i64>,
    /// How many writing requests the API server works on at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = no_format)]
    pub maximum_mutating_requests_inflight: Option<i64>,
}

/// Resource requests of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequest {
    /// The Deployment or StatefulSet.
    pub deployment_name: String,
    /// The container.
    pub container_name: String,
    /// The memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    /// The processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
}

/// How the management cluster prepares for clusters of a size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Management {
    /// For how many clusters nodes are kept ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), transform = no_format)]
    pub placeholders: Option<i64>,
    /// How many nodes in each zone a cluster needs for what does not serve requests; fractions add up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub non_request_serving_nodes_per_zone: Option<Quantity>,
}

/// How many clusters may change their size at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrencyConfiguration {
    /// The observed period.
    #[schemars(
        regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"),
        extend("default" = "10m"),
    )]
    pub sliding_window: Duration,
    /// How many clusters may change their size within it.
    #[schemars(range(min = 1), extend("default" = 5))]
    pub limit: i32,
}

/// How long a cluster keeps its size after another one would fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionDelayConfiguration {
    /// Before it grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"),
        extend("default" = "30s"),
    )]
    pub increase: Option<Duration>,
    /// Before it shrinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$"),
        extend("default" = "10m"),
    )]
    pub decrease: Option<Duration>,
}

/// How sizes follow from what API servers use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceBasedAutoscalingConfiguration {
    /// Fraction of a size's memory that an API server may use before the next size is chosen, between 0 and 1.
    #[serde(
        rename = "kubeAPIServerMemoryFraction",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub kube_api_server_memory_fraction: Option<Quantity>,
}

/// Whether the configuration is in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterSizingConfigurationStatus {
    /// Whether the configuration is valid, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
}

impl Kind for ClusterSizingConfiguration {
    const DESCRIPTION: &'static str = "The sizes of hosted control planes by their number of nodes, and what follows from a size. There is one, with the name cluster.";
    const RULES: &'static [(&'static str, &'static str)] = &[(
        "self.metadata.name == 'cluster'",
        "there is one ClusterSizingConfiguration: name it cluster",
    )];
}
