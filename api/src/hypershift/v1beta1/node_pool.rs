//! A set of machines of one kind, the nodes of a hosted cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Duration, Release, Taint};
use crate::crds::Kind;
use crate::schema::{self, immutable, preview_rule, rule, tech_preview};

mod aws;
mod azure;
mod gcp;
mod kubevirt;
mod openstack;
mod platform;
mod status;

pub use aws::*;
pub use azure::*;
pub use gcp::*;
pub use kubevirt::*;
pub use openstack::*;
pub use platform::*;
pub use status::*;

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
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterName"),
    printcolumn(
        name = "Desired Nodes",
        type_ = "integer",
        json_path = ".spec.replicas"
    ),
    printcolumn(
        name = "Current Nodes",
        type_ = "integer",
        json_path = ".status.replicas"
    ),
    printcolumn(
        name = "Autoscaling",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="AutoscalingEnabled")].status"#
    ),
    printcolumn(
        name = "Autorepair",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="AutorepairEnabled")].status"#
    ),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "UpdatingVersion",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpdatingVersion")].status"#
    ),
    printcolumn(
        name = "UpdatingConfig",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpdatingConfig")].status"#
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.arch) || !has(oldSelf.arch)",
        "arch cannot be removed: keep the value that it has"
    ),
    transform = rule(
        "self.arch != 'arm64' || self.platform.type == 'None' || [has(self.platform.aws), has(self.platform.azure), has(self.platform.agent)].exists(given, given)",
        "arch arm64 runs on AWS, Azure, Agent and None only: choose amd64, or fill in aws, azure or agent under platform"
    ),
    transform = rule(
        "!(has(self.replicas) && has(self.autoScaling))",
        "replicas and autoScaling exclude each other: remove one of them"
    ),
    transform = rule(
        "has(self.platform.kubevirt) || self.arch != 's390x'",
        "arch s390x runs on KubeVirt only: choose another arch, or fill in platform.kubevirt"
    ),
    transform = rule(
        "self.arch == 'amd64' || !(has(self.platform.aws) && has(self.platform.aws.imageType) && self.platform.aws.imageType == 'Windows')",
        "Windows nodes are amd64 only: set arch to amd64, or platform.aws.imageType to Linux"
    ),
    transform = rule(
        "self.platform.type in ['AWS', 'Azure'] || !(has(self.autoScaling) && self.autoScaling.min == 0)",
        "scaling to no nodes works on AWS and Azure only: set autoScaling.min to 1 or more"
    ),
    transform = preview_rule(
        "has(self.osImageStream) || !has(oldSelf.osImageStream)",
        "osImageStream cannot be removed once it is set: put it back"
    ),
)]
pub struct NodePoolSpec {
    /// The hosted cluster that the nodes belong to, of the same namespace.
    #[schemars(
        length(min = 1, max = 253),
        transform = immutable("clusterName cannot change: create a NodePool for the other cluster"),
        transform = rule(
            "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "clusterName must be the name of a HostedCluster: lower-case letters, digits and dashes, with no dash at either end"
        ),
    )]
    pub cluster_name: String,
    /// The release that the nodes run. A new one rolls the nodes, in the way that `management` says.
    pub release: Release,
    /// The platform of the machines, and their configuration.
    pub platform: NodePoolPlatform,
    /// How many nodes there should be. Unset where `autoScaling` decides; unset without it, the number of nodes is left
    /// as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Lets the cluster autoscaler choose the number of nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_scaling: Option<NodePoolAutoScaling>,
    /// How nodes are replaced, upgraded and repaired.
    pub management: NodePoolManagement,
    /// The processor architecture of the machines.
    #[serde(default)]
    #[schemars(transform = immutable(
        "arch cannot change: create a NodePool of the other architecture and remove this one"
    ))]
    pub arch: Arch,
    /// ConfigMaps of the same namespace that hold, under the key `config`, settings of the nodes: MachineConfig,
    /// KubeletConfig, ContainerRuntimeConfig, ImageContentSourcePolicy, ImageDigestMirrorSet or ClusterImagePolicy.
    /// A change rolls the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::LocalObjectReference>", length(max = 10))]
    pub config: Vec<LocalObjectReference>,
    /// ConfigMaps of the same namespace that hold, under the key `tuning`, one Tuned or one PerformanceProfile each.
    /// At most one PerformanceProfile applies to a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::LocalObjectReference>", length(max = 10))]
    pub tuning_config: Vec<LocalObjectReference>,
    /// Labels that every node of the pool gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_labels: BTreeMap<String, String>,
    /// Taints that every node of the pool gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub taints: Vec<Taint>,
    /// How long draining a node may take before its machine is removed anyway, such as `30m`.
    /// Unset or zero waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<Duration>,
    /// How long a node may take to detach its volumes before its machine is removed all the same, such as `5m`.
    /// Unset or zero waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<Duration>,
    /// Stops all work on the pool: until a moment such as `2030-01-31T12:00:00Z`, or while it is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 35),
        transform = rule(
            r"self in ['true', 'True', 'false', 'False'] || self.matches(r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*$')",
            "pausedUntil must be a moment such as 2030-01-31T12:00:00Z, or true or false"
        ),
    )]
    pub paused_until: Option<String>,
    /// The operating system of the nodes. Unset: the default of the release. It cannot be removed once it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = rule(
            "self.name != 'rhel-9' || oldSelf.name != 'rhel-10'",
            "nodes cannot go back from rhel-10 to rhel-9: create another NodePool"
        ),
        transform = tech_preview,
    )]
    pub os_image_stream: Option<OsImageStream>,
}

/// A stream of operating system images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OsImageStream {
    /// Its name: `rhel-9` or `rhel-10`.
    #[schemars(extend("enum" = ["rhel-9", "rhel-10"]))]
    pub name: String,
}

/// A processor architecture, by the name that Kubernetes has for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86.
    #[default]
    Amd64,
    /// 64-bit Arm.
    Arm64,
    /// 64-bit POWER, little-endian.
    Ppc64le,
    /// 64-bit IBM Z.
    S390x,
}

/// Within which bounds the cluster autoscaler chooses the number of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule(
    "self.min <= self.max",
    "max must not be less than min: raise max or lower min"
))]
pub struct NodePoolAutoScaling {
    /// The smallest number of nodes. Zero works on AWS and Azure only.
    #[schemars(range(min = 0))]
    pub min: i32,
    /// The largest number of nodes.
    #[schemars(range(min = 1))]
    pub max: i32,
}

/// How nodes are replaced, upgraded and repaired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "self.upgradeType == 'InPlace' || !has(self.inPlace)",
    "inPlace applies to upgradeType InPlace only: remove inPlace"
))]
pub struct NodePoolManagement {
    /// How a new release or configuration reaches the nodes.
    #[schemars(transform = immutable(
        "upgradeType cannot change: create a NodePool with the other upgradeType and remove this one"
    ))]
    pub upgrade_type: UpgradeType,
    /// How machines are replaced. Ignored for upgradeType InPlace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        "strategy": "RollingUpdate",
    }))]
    pub replace: Option<ReplaceUpgrade>,
    /// How nodes are upgraded where they are. Only for upgradeType InPlace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlaceUpgrade>,
    /// Replaces machines with unhealthy nodes.
    #[serde(default)]
    pub auto_repair: bool,
}

/// How a new release or configuration reaches the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeType {
    /// New machines take the place of the old ones.
    Replace,
    /// The machines stay, and their operating systems are updated.
    InPlace,
}

/// How machines are replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.rollingUpdate) || (has(self.strategy) && self.strategy == 'RollingUpdate')",
    "rollingUpdate applies to strategy RollingUpdate only: remove rollingUpdate, or set strategy to RollingUpdate"
))]
pub struct ReplaceUpgrade {
    /// When machines are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<UpgradeStrategy>,
    /// How many machines are replaced at a time. Only for strategy RollingUpdate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
}

/// When machines are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum UpgradeStrategy {
    /// At once, a few at a time.
    RollingUpdate,
    /// When a user deletes the old machine.
    OnDelete,
}

/// How many machines are replaced at a time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdate {
    /// How many nodes may be missing meanwhile: a number, or a percentage of the pool, rounded down.
    /// Not zero where `maxSurge` is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::IntOrString>")]
    pub max_unavailable: Option<IntOrString>,
    /// How many nodes there may be beyond the wanted number meanwhile: a number, or a percentage of the pool, rounded up.
    /// Not zero where `maxUnavailable` is zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::IntOrString>")]
    pub max_surge: Option<IntOrString>,
}

/// How nodes are upgraded where they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpgrade {
    /// How many nodes may be upgraded at a time: a number, or a percentage of the pool, rounded down. Unset means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::IntOrString>")]
    pub max_unavailable: Option<IntOrString>,
}

impl Kind for NodePool {
    const DESCRIPTION: &'static str =
        "A set of machines of one kind, the nodes of a hosted cluster.";
}
