//! One component of a hosted control plane, and its rollout status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::schema::{self, list_map};

/// Empty: the component's name says which one it is.
#[derive(
    CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "ControlPlaneComponent",
    doc = "One component of a hosted control plane, and its rollout status.",
    namespaced,
    status = "ControlPlaneComponentStatus",
    derive = "PartialEq",
    shortname = "cpc",
    shortname = "cpcs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#
    ),
    printcolumn(
        name = "RolloutComplete",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="RolloutComplete")].status"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].message"#
    ),
    printcolumn(
        name = "RolloutCompleteMessage",
        type_ = "string",
        priority = 1,
        json_path = r#".status.conditions[?(@.type=="RolloutComplete")].message"#
    )
)]
pub struct ControlPlaneComponentSpec {}

/// Rollout status of the component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneComponentStatus {
    /// Whether the component is available, and whether its roll-out is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(max = 10),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
    /// The version of the release that is rolled out completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub version: Option<String>,
    /// The generation of the hosted control plane that the component was last brought in line with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9_007_199_254_740_992_i64))]
    pub observed_generation: Option<i64>,
    /// The objects that make up the component, of the same namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub resources: Vec<ComponentResource>,
}

/// An object that belongs to a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComponentResource {
    /// The object's kind.
    #[schemars(length(max = 255))]
    pub kind: String,
    /// The object's API group; empty for the core group.
    #[schemars(length(max = 255))]
    pub group: String,
    /// The object's name.
    #[schemars(length(max = 255))]
    pub name: String,
}

impl Kind for ControlPlaneComponent {
    const DESCRIPTION: &'static str = "One component of a hosted control plane, and its rollout status. Created and updated by the control plane operator.";
}
