//! Choices about where components run, and how many of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many replicas components have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AvailabilityPolicy {
    /// Several, on different nodes, so that one may fail.
    HighlyAvailable,
    /// One.
    SingleReplica,
}

/// Where the catalogs of operators run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OlmCatalogPlacement {
    /// In the control plane, on the management cluster.
    #[default]
    #[serde(rename = "management")]
    Management,
    /// On the cluster's nodes.
    #[serde(rename = "guest")]
    Guest,
}

// === impl AvailabilityPolicy ===

impl AvailabilityPolicy {
    pub(in crate::hypershift::v1beta1) fn highly_available() -> Self {
        Self::HighlyAvailable
    }

    pub(in crate::hypershift::v1beta1) fn single_replica() -> Self {
        Self::SingleReplica
    }
}
