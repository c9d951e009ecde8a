//! Machines on KubeVirt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::common::Quantity;
use crate::schema::no_format;

/// Machines on KubeVirt: virtual machines in a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtNodePoolPlatform {
    /// The disk that holds the operating system.
    #[schemars(extend("default" = {"persistent": {"size": "32Gi"}, "type": "Persistent"}))]
    pub root_volume: KubevirtRootVolume,
    /// Processors and memory of a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"cores": 2, "memory": "8Gi"}))]
    pub compute: Option<KubevirtCompute>,
    /// Whether the network interface has a queue for each processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Enable"))]
    pub network_interface_multiqueue: Option<KubevirtMultiqueue>,
    /// Further networks that machines are attached to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub additional_networks: Vec<KubevirtNetwork>,
    /// Whether machines are on the pod network. Without it there has to be an additional network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub attach_default_network: Option<bool>,
    /// Labels of the nodes that the virtual machines may run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Devices of the hosts that machines get, such as GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub host_devices: Vec<KubevirtHostDevice>,
}

/// The disk that holds the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtRootVolume {
    /// How the disk is stored.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Persistent"))]
    pub type_: Option<KubevirtVolumeType>,
    /// The volume that holds the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<KubevirtPersistentVolume>,
    /// The image that the disk starts from. Unset: the one that belongs to the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_image: Option<KubevirtDiskImage>,
    /// Whether the image is kept at hand, so that later machines start faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_strategy: Option<KubevirtCachingStrategy>,
}

/// How a disk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtVolumeType {
    /// On a volume that outlives the pod.
    Persistent,
}

/// A volume that holds a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtPersistentVolume {
    /// The size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "32Gi"))]
    pub size: Option<Quantity>,
    /// The storage class. Unset: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub storage_class: Option<String>,
    /// How the volume may be mounted. ReadWriteMany lets machines move between hosts while they run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub access_modes: Vec<KubevirtAccessMode>,
    /// Whether the volume is a file system or a bare device. Unset: as the storage class prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<KubevirtVolumeMode>,
}

/// How a volume may be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtAccessMode {
    /// By one node.
    ReadWriteOnce,
    /// By several nodes.
    ReadWriteMany,
    /// By nodes that only read.
    ReadOnly,
    /// By one pod.
    ReadWriteOncePod,
}

/// What a volume looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtVolumeMode {
    /// A file system.
    Filesystem,
    /// A bare device.
    Block,
}

/// The image that a disk starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtDiskImage {
    /// A container image that holds the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub container_disk_image: Option<String>,
}

/// Whether images are kept at hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubevirtCachingStrategy {
    /// How they are kept.
    #[serde(rename = "type")]
    #[schemars(extend("default" = "None"))]
    pub type_: KubevirtCaching,
}

/// How images are kept at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtCaching {
    /// Not at all: each machine fetches its image.
    None,
    /// On a volume, from which disks are cloned.
    #[serde(rename = "PVC")]
    Pvc,
}

/// Processors and memory of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtCompute {
    /// The memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "8Gi"))]
    pub memory: Option<Quantity>,
    /// The number of processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cores: Option<i32>,
    /// Whether the machine has its processors and memory for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Burstable"))]
    pub qos_class: Option<KubevirtQosClass>,
}

/// Whether a machine has its processors and memory for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtQosClass {
    /// The memory is its own, the processors are shared.
    Burstable,
    /// Both are its own.
    Guaranteed,
}

/// Whether a network interface has a queue for each processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtMultiqueue {
    /// It has.
    Enable,
    /// It has one queue.
    Disable,
}

/// A further network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KubevirtNetwork {
    /// The NetworkAttachmentDefinition, as `<namespace>/<name>`.
    #[schemars(length(max = 255))]
    pub name: String,
}

/// Devices of the hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtHostDevice {
    /// The device's resource name, as KubeVirt lists it among its permitted host devices.
    #[schemars(length(max = 255))]
    pub device_name: String,
    /// How many of it each machine gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        range(min = 1, max = 2_147_483_647),
        extend("default" = 1),
        transform = no_format,
    )]
    pub count: Option<i32>,
}
