//! How the number of nodes follows the load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// How the cluster autoscaler works. It takes care of node pools that have `autoScaling` set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.scaling != 'ScaleUpOnly' || !has(self.scaleDown)",
        "scaleDown has no meaning with scaling ScaleUpOnly; remove it, or set scaling to \
         ScaleUpAndScaleDown"
    ),
)]
pub struct ClusterAutoscaling {
    /// Whether nodes are added only, or removed as well.
    #[serde(default)]
    pub scaling: AutoscalingMode,
    /// When nodes are removed. It is allowed with `ScaleUpAndScaleDown` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScaleDownConfig>,
    /// Labels that are ignored when it is decided whether node pools are alike and should grow
    /// evenly.
    /// Labels that OpenShift and the clouds set on nodes by themselves are ignored anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 317)),
        transform = rule(
            "self.all(key, \
             key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[a-zA-Z0-9]([-_.a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$'))",
            "every entry must be a label key such as example.com/rack or rack"
        ),
    )]
    pub balancing_ignored_labels: Vec<String>,
    /// Number of nodes, in all node pools together and those that do not scale included, beyond
    /// which none are added.
    /// Without a value there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_nodes_total: Option<i32>,
    /// Seconds that pods get to end before the node that they are on is removed, if their own grace
    /// period is longer. Without a value it is 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_pod_grace_period: Option<i32>,
    /// How long a new machine may take to become a node before another attempt is made, as a
    /// duration such as `15m`. Without a value it is 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 100),
        regex(pattern = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$")
    )]
    pub max_node_provision_time: Option<String>,
    /// By how many percent the free capacity of two node pools may differ for them to count as
    /// alike. Without a value it is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub max_free_difference_ratio_percent: Option<i32>,
    /// Priority from which on pods count: those below it neither cause nodes to be added nor keep
    /// nodes from being removed.
    /// Without a value it is -10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_priority_threshold: Option<i32>,
    /// How the node pool to grow is chosen when several would do. The first decides, and each
    /// further one where those before it see no difference.
    /// Without a value they are `Priority`, then `LeastWaste`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    pub expanders: Vec<Expander>,
}

/// When nodes are removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleDownConfig {
    /// Seconds after a node was added in which none is removed, up to a day. Without a value they
    /// are 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub delay_after_add_seconds: Option<i32>,
    /// Seconds after a node was removed in which no other is, up to a day. Without a value they are
    /// 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub delay_after_delete_seconds: Option<i32>,
    /// Seconds after a removal failed in which no other is tried, up to a day. Without a value they
    /// are 180.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub delay_after_failure_seconds: Option<i32>,
    /// Seconds that a node must have been superfluous before it is removed, up to a day. Without a
    /// value they are 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub unneeded_duration_seconds: Option<i32>,
    /// Percentage of a node's capacity that its pods must request for it to be needed; below that
    /// it is superfluous. Without a value it is 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub utilization_threshold_percent: Option<i32>,
}

/// In which directions the number of nodes may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AutoscalingMode {
    /// Nodes are added and never removed.
    ScaleUpOnly,
    /// Nodes are added and removed.
    #[default]
    ScaleUpAndScaleDown,
}

/// A way to choose the node pool to grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Expander {
    /// The one that leaves the least CPU, then memory, idle.
    LeastWaste,
    /// The one with the highest priority, from the ConfigMap `cluster-autoscaler-priority-expander`
    /// in the hosted cluster.
    Priority,
    /// Any.
    Random,
}
