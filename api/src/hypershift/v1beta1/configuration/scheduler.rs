//! How pods are placed on nodes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::NameReference;

/// How pods are placed on nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerConfiguration {
    /// Deprecated: ConfigMap with a scheduler policy, under the key `policy.cfg`. Kubernetes knows
    /// no policies any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<NameReference>,
    /// Which goal pods are placed by. Without a value it is `LowNodeUtilization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<SchedulerProfile>,
    /// Changes to the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_customizations: Option<SchedulerProfileCustomizations>,
    /// Labels, as `key=value` with commas in between, of the nodes for pods of namespaces that do
    /// not say otherwise. Without it pods may run anywhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_node_selector: Option<String>,
    /// Has no effect: a hosted cluster has no control plane nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masters_schedulable: Option<bool>,
}

/// Changes to a scheduler profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulerProfileCustomizations {
    /// Whether the scheduler takes claims for devices into account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dynamic_resource_allocation: Option<DynamicResourceAllocation>,
}

/// A goal that pods are placed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SchedulerProfile {
    /// As if nothing were said: low utilization of nodes.
    #[serde(rename = "")]
    Unset,
    /// Pods are spread, so that no node is used much.
    LowNodeUtilization,
    /// Pods are packed, so that few nodes are used.
    HighNodeUtilization,
    /// Pods go where they fit; this is the quickest.
    NoScoring,
}

/// Whether the scheduler takes claims for devices into account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DynamicResourceAllocation {
    /// As if nothing were said: the scheduler decides.
    #[serde(rename = "")]
    Unset,
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
}
