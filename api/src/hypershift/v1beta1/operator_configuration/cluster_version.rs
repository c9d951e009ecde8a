//! Settings of the cluster version operator. They are part of the technology preview.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the cluster version operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersionOperatorSpec {
    /// How much the operator logs.
    #[serde(default)]
    pub operator_log_level: OperatorLogLevel,
}

/// How much an operator logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OperatorLogLevel {
    /// As `Normal`.
    #[serde(rename = "")]
    Unset,
    /// What operators need to know.
    #[default]
    Normal,
    /// Also what helps to find a fault.
    Debug,
    /// Also the steps of each operation.
    Trace,
    /// Everything, including bodies of requests.
    TraceAll,
}
