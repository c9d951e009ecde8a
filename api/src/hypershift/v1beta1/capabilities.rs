//! Optional parts of OpenShift.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{atomic_list, immutable, rule};

/// Which optional parts of OpenShift a hosted cluster has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = immutable(
        "the choice of capabilities is made when the cluster is created; create a new cluster to \
         choose others"
    ),
    transform = rule(
        "!has(self.enabled) || !has(self.disabled) || \
         !self.disabled.exists(name, name in self.enabled)",
        "a capability cannot be both enabled and disabled; remove it from one of the two lists"
    ),
)]
pub struct Capabilities {
    /// Parts to have in addition to those that the release has by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 25),
        transform = immutable(
            "capabilities cannot be enabled later; create a new cluster that has them"
        ),
        transform = atomic_list,
    )]
    pub enabled: Vec<OptionalCapability>,
    /// Parts to leave out. `Ingress` can be left out together with `Console` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 25),
        transform = immutable(
            "capabilities cannot be disabled later; create a new cluster without them"
        ),
        transform = rule(
            "!('Ingress' in self) || 'Console' in self",
            "the console needs ingress; disable Console as well, or keep Ingress"
        ),
        transform = atomic_list,
    )]
    pub disabled: Vec<OptionalCapability>,
}

/// An optional part of OpenShift.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OptionalCapability {
    /// The image registry inside of the cluster.
    ImageRegistry,
    /// Sample image streams and templates.
    #[serde(rename = "openshift-samples")]
    Samples,
    /// Reports on the cluster's health to Red Hat.
    Insights,
    /// The operator for bare-metal hosts.
    #[serde(rename = "baremetal")]
    Baremetal,
    /// The web console.
    Console,
    /// The node tuning operator.
    NodeTuning,
    /// The router for applications.
    Ingress,
}
