//! A set of machines of one kind, the nodes of a hosted cluster.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Release;
use crate::crds::Kind;
use crate::schema::{immutable, rule};

/// What the pool should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "NodePool",
    doc = "A set of machines of one kind, the nodes of a hosted cluster.",
    namespaced,
    status = "NodePoolStatus",
    derive = "PartialEq",
    shortname = "np",
    shortname = "nps",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName")
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// The hosted cluster that the nodes belong to, of the same namespace.
    #[schemars(
        length(min = 1, max = 253),
        transform = immutable("clusterName cannot change: create a NodePool for the other cluster"),
        transform = rule(
            "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "clusterName must be the name of a HostedCluster: lower-case letters, digits and dashes, and no dash at either end"
        ),
    )]
    pub cluster_name: String,
    /// The release that the nodes run.
    pub release: Release,
    /// How many nodes there should be. Unset where `autoScaling` decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// What the pool is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// How many nodes there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

impl Kind for NodePool {
    const DESCRIPTION: &'static str =
        "A set of machines of one kind, the nodes of a hosted cluster.";
}
