//! Settings of the kubelet on machines that Karpenter makes.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::{preserve_unknown, rule, with};

/// Settings of the kubelet. Those that are not listed are kept and passed on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = preserve_unknown,
    transform = rule(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || \
         self.imageGCLowThresholdPercent < self.imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent: lower it"
    ),
    transform = rule(
        "!has(self.maxPods) || !has(self.podsPerCore) || self.maxPods >= self.podsPerCore",
        "podsPerCore must not be more than maxPods: lower it, or raise maxPods"
    ),
    transform = rule(
        "!has(self.evictionSoft) || has(self.evictionSoftGracePeriod) && \
         self.evictionSoft.all(it, it in self.evictionSoftGracePeriod)",
        "each signal of evictionSoft needs a period: add it to evictionSoftGracePeriod"
    ),
    transform = rule(
        "!has(self.evictionSoftGracePeriod) || has(self.evictionSoft) && \
         self.evictionSoftGracePeriod.all(it, it in self.evictionSoft)",
        "each signal of evictionSoftGracePeriod needs a threshold: add it to evictionSoft"
    ),
    transform = rule(
        "!has(self.evictionHard) || !has(self.evictionSoft) || self.evictionHard.all(it, \
         !(it in self.evictionSoft) || \
         ((self.evictionSoft[it].endsWith('%') && self.evictionHard[it].endsWith('%')) ? \
         (self.evictionSoft[it].size() < 2 || self.evictionHard[it].size() < 2 || \
         double(self.evictionHard[it].substring(0, self.evictionHard[it].size() - 1)) <= \
         double(self.evictionSoft[it].substring(0, self.evictionSoft[it].size() - 1))) : \
         (!isQuantity(self.evictionSoft[it]) || !isQuantity(self.evictionHard[it]) || \
         quantity(self.evictionHard[it]).compareTo(quantity(self.evictionSoft[it])) <= 0)))",
        "a threshold of evictionSoft must not be less than that of evictionHard: raise it"
    ),
)]
pub struct KubeletSettings {
    /// The largest number of pods of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2500))]
    pub max_pods: Option<i32>,
    /// The largest number of pods of a node for each of its processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2500))]
    pub pods_per_core: Option<i32>,
    /// What is reserved for the operating system.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = reserved)]
    pub system_reserved: BTreeMap<String, String>,
    /// What is reserved for the kubelet and the container runtime.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = reserved)]
    pub kube_reserved: BTreeMap<String, String>,
    /// Thresholds at which pods are evicted at once: amounts or percentages, by signal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = thresholds)]
    pub eviction_hard: BTreeMap<String, Threshold>,
    /// Thresholds at which pods are evicted after a period: amounts or percentages, by signal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = thresholds)]
    pub eviction_soft: BTreeMap<String, Threshold>,
    /// Those periods, such as `1m30s`, by signal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = signals)]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// The longest time in seconds that pods get to end when they are evicted after a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// The use of the disk in percent at which unused images are removed.
    #[serde(
        rename = "imageGCHighThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The use of the disk in percent down to which unused images are removed.
    #[serde(
        rename = "imageGCLowThresholdPercent",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether limits of processors are enforced.
    #[serde(
        rename = "cpuCFSQuota",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub cpu_cfs_quota: Option<bool>,
    /// Settings that are not listed.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Value>,
}

/// An amount, such as `100Mi`, or a percentage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Threshold(#[schemars(length(max = 64))] pub String);

fn reserved(schema: &mut Schema) {
    with("minProperties", 1)(schema);
    with("maxProperties", 20)(schema);
    rule(
        "self.all(it, it in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",
        "cpu, memory, ephemeral-storage and pid can be reserved: remove the others",
    )(schema);
    rule(
        "!self.exists(it, self[it].startsWith('-'))",
        "an amount that is reserved cannot be negative: correct it",
    )(schema);
    rule(
        "!self.exists(it, self[it] == '')",
        "an amount that is reserved cannot be empty: fill it in",
    )(schema);
}

fn thresholds(schema: &mut Schema) {
    signals(schema);
    rule(
        "!self.exists(it, self[it] == '')",
        "a threshold cannot be empty: fill it in",
    )(schema);
}

fn signals(schema: &mut Schema) {
    with("minProperties", 1)(schema);
    with("maxProperties", 20)(schema);
    rule(
        "self.all(it, it in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', \
         'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",
        "signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, \
         imagefs.inodesFree and pid.available: remove the others",
    )(schema);
}
