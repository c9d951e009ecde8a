//! The catalogs of operators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The catalogs of operators that a hosted cluster has.
/// When the catalogs run in the control plane, what is said here is taken over when the cluster is
/// created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorHubConfiguration {
    /// Whether all default catalogs of OpenShift are disabled, for example because there is
    /// no internet. Single ones can be turned on again in `sources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_all_default_sources: Option<bool>,
    /// Catalogs to turn on or off one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<HubSource>,
}

/// A catalog to turn on or off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubSource {
    /// Name of the catalog, for example `redhat-operators`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// Whether it is turned off. Without a value it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}
