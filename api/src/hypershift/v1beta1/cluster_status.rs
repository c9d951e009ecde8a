//! Parts of the status that a hosted cluster and its control plane have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an API server is reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiEndpoint {
    /// Host name or IP address.
    #[schemars(length(max = 255))]
    pub host: String,
    /// Port.
    pub port: i32,
}

/// What was found out, or made, on the infrastructure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformStatus {
    /// On AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsPlatformStatus>,
}

/// What was made on AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsPlatformStatus {
    /// ID of the security group that nodes get unless their node pool says otherwise.
    #[serde(
        rename = "defaultWorkerSecurityGroupID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub default_worker_security_group_id: Option<String>,
}
