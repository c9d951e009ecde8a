//! A hosted cluster on IBM Cloud.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings for IBM Cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IbmCloudPlatformSpec {
    /// How the cluster's infrastructure is built: `Classic`, `VPC`, `UPI` or `UnknownProvider`.
    /// The hosted cluster reads it from its Infrastructure object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_type: Option<String>,
}
