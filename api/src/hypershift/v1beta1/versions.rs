//! Which releases a cluster has run, runs and may run next.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, atomic_list, list_map, nullable, rule, set, with};

/// Which release the nodes' side of a cluster runs, as its cluster version operator reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVersionStatus {
    /// The release that is being rolled out, or was last.
    pub desired: ReleaseInfo,
    /// Releases that were rolled out, newest first. The list is cut now and then, but releases that
    /// were completed stay longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<UpdateHistory>,
    /// Generation of the specification that this was found for.
    pub observed_generation: i64,
    /// Releases to which an update is recommended. `null` when no update service was queried.
    #[schemars(required, length(max = 100), transform = nullable)]
    pub available_updates: Option<Vec<ReleaseInfo>>,
    /// Releases to which an update is recommended unless a risk applies to the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), transform = atomic_list)]
    pub conditional_updates: Vec<ConditionalUpdate>,
}

/// A release.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInfo {
    /// Version of the release, for example `4.20.1`.
    pub version: String,
    /// The image that holds the release.
    pub image: String,
    /// URL of a page about the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Channels that the release is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = set)]
    pub channels: Vec<String>,
}

/// A release that was rolled out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateHistory {
    /// `Completed` when all of it was rolled out, `Partial` otherwise.
    pub state: String,
    /// When the roll-out began.
    #[schemars(with = "schema::Time")]
    pub started_time: Time,
    /// When the rollout completed, or another release replaced it. `null` while it is in progress.
    #[schemars(with = "schema::Time", transform = nullable)]
    pub completion_time: Option<Time>,
    /// Version of the release. It is empty if the release could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The image that holds the release.
    pub image: String,
    /// Whether the release's signature was verified before it was rolled out.
    pub verified: bool,
    /// Risks that were accepted with the roll-out, for example an image without a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_risks: Option<String>,
}

/// A release to which an update may be recommended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalUpdate {
    /// The release.
    pub release: ReleaseInfo,
    /// Risks of the update. It is recommended if none of them applies to the cluster.
    #[schemars(length(min = 1, max = 200), transform = list_map(["name"]))]
    pub risks: Vec<ConditionalUpdateRisk>,
    /// Whether the update is recommended, as the condition `Recommended`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
}

/// A risk of an update.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionalUpdateRisk {
    /// Name of the risk, as one word.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What could happen, and to which clusters.
    #[schemars(length(min = 1))]
    pub message: String,
    /// URL of a page about the risk.
    #[schemars(length(min = 1), transform = with("format", "uri"))]
    pub url: String,
    /// How it is found out whether the risk applies; the first rule that can be evaluated decides.
    #[schemars(length(min = 1), transform = atomic_list)]
    pub matching_rules: Vec<ClusterCondition>,
}

/// How it is found out whether a risk applies to a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCondition {
    /// The way in which it is found out.
    #[serde(rename = "type")]
    pub type_: ClusterConditionType,
    /// The query, when `type` is `PromQL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promql: Option<PromQlClusterCondition>,
}

/// A question to the cluster's metrics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromQlClusterCondition {
    /// Query that gives 1 if the risk applies, and 0 if it does not.
    pub promql: String,
}

/// How it is found out whether a risk applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClusterConditionType {
    /// It always applies.
    Always,
    /// By a query of the cluster's metrics.
    #[serde(rename = "PromQL")]
    PromQl,
}

/// Which release the components of a control plane run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneVersionStatus {
    /// The release that is being rolled out, or was last.
    pub desired: ReleaseInfo,
    /// Releases that were rolled out, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), transform = atomic_list)]
    pub history: Vec<ControlPlaneUpdateHistory>,
    /// Generation of the specification that this was found for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub observed_generation: Option<i64>,
}

/// A release that was rolled out to a control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneUpdateHistory {
    /// Whether all components run it.
    pub state: ControlPlaneUpdateState,
    /// When the roll-out began.
    #[schemars(with = "schema::Time")]
    pub started_time: Time,
    /// When all components ran it. It is absent until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub completion_time: Option<Time>,
    /// Version of the release, for example `4.20.1`.
    #[schemars(
        length(min = 1, max = 64),
        transform = rule(
            "self.matches('^[0-9]+[.][0-9]+[.][0-9]+')",
            "version must begin with a version of three numbers, such as 4.20.1"
        ),
    )]
    pub version: String,
    /// The image that holds the release.
    #[schemars(length(min = 1, max = 447))]
    pub image: String,
}

/// How far a release is rolled out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ControlPlaneUpdateState {
    /// All components run it.
    Completed,
    /// Some components run it.
    Partial,
}
