//! A hosted cluster on machines of an Agent service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes from machines that an Agent service has discovered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentPlatformSpec {
    /// Namespace of the management cluster in which the service keeps its Agent objects.
    /// The nodes of the cluster are taken from there.
    #[schemars(length(max = 63))]
    pub agent_namespace: String,
}
