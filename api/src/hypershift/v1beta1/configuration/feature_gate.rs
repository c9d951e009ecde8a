//! Features that are not on by default.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{nullable, rule};

/// Features that are not on by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureGateConfiguration {
    /// Set of features to turn on.
    /// A set other than the empty one and `OKD` cannot be left again, and keeps the cluster from
    /// being upgraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = rule(
            "oldSelf != 'CustomNoUpgrade' || self == oldSelf",
            "the feature set CustomNoUpgrade cannot be left again; create a new cluster"
        ),
        transform = rule(
            "oldSelf != 'TechPreviewNoUpgrade' || self == oldSelf",
            "the feature set TechPreviewNoUpgrade cannot be left again; create a new cluster"
        ),
        transform = rule(
            "oldSelf != 'DevPreviewNoUpgrade' || self == oldSelf",
            "the feature set DevPreviewNoUpgrade cannot be left again; create a new cluster"
        ),
        transform = rule(
            "oldSelf != 'OKD' || self.size() > 0",
            "the feature set OKD cannot be taken back to the default; leave it, or choose another \
             set"
        ),
    )]
    pub feature_set: Option<FeatureSet>,
    /// Single features to turn on or off, when `featureSet` is `CustomNoUpgrade`. Nothing of it is
    /// supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = nullable)]
    pub custom_no_upgrade: Option<CustomFeatureGates>,
}

/// Single features to turn on or off.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomFeatureGates {
    /// Names of features to turn on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$")))]
    pub enabled: Vec<String>,
    /// Names of features to turn off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$")))]
    pub disabled: Vec<String>,
}

/// A set of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum FeatureSet {
    /// Those that are listed. Not supported.
    CustomNoUpgrade,
    /// Those in development. Not supported.
    DevPreviewNoUpgrade,
    /// Those that may be tried before they are supported.
    TechPreviewNoUpgrade,
    /// Those of OKD.
    #[serde(rename = "OKD")]
    Okd,
    /// Those that are on by default.
    #[serde(rename = "")]
    Default,
}
