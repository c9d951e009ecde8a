//! Machines on Google Cloud. They are part of the technology preview.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::platform::gcp::{GcpResourceLabel, email, resource_name};
use crate::schema::{list_map, rule, set};

/// Machines on Google Cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "!has(self.onHostMaintenance) || self.onHostMaintenance == 'TERMINATE' || !has(self.provisioningModel) || self.provisioningModel == 'Standard'",
    "machines of provisioningModel Spot or Preemptible are terminated for maintenance: set onHostMaintenance to TERMINATE, or provisioningModel to Standard"
))]
pub struct GcpNodePoolPlatform {
    /// The machine type, such as `n2-standard-4`.
    #[schemars(
        length(min = 1, max = 255),
        transform = rule(
            "self.matches('^[0-9a-z]+(-[0-9a-z]+)*$')",
            "machineType must be a machine type of Google Cloud, such as n2-standard-4"
        ),
    )]
    pub machine_type: String,
    /// The zone of the machines, such as `us-central1-a`. It must be in the region of the cluster.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[a-z]+(-[0-9a-z]+)*-[a-z]$')",
            "zone must be a zone of Google Cloud, such as us-central1-a"
        ),
    )]
    pub zone: String,
    /// The subnet of the machines, in the network of the cluster.
    #[schemars(length(min = 1, max = 63), transform = resource_name)]
    pub subnet: String,
    /// The image that machines start from. Unset: the one that belongs to the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub image: Option<String>,
    /// The disk that machines start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_disk: Option<GcpBootDisk>,
    /// The service account of the machines. Unset: the default one of the project, with access to everything that it may
    /// do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<GcpNodeServiceAccount>,
    /// Labels of the machines, in addition to those of the cluster. A label here takes precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 60), transform = list_map(["key"]))]
    pub resource_labels: Vec<GcpResourceLabel>,
    /// Network tags of the machines, which firewall rules refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64), transform = set)]
    pub network_tags: Vec<GcpNetworkTag>,
    /// Whether Google Cloud may take the machines back.
    #[serde(default)]
    pub provisioning_model: GcpProvisioningModel,
    /// What happens to a machine while its host is maintained. Unset: `TERMINATE` for machines that may be taken back,
    /// `MIGRATE` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_host_maintenance: Option<GcpOnHostMaintenance>,
}

/// A network tag of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = resource_name)]
pub struct GcpNetworkTag(#[schemars(length(min = 1, max = 63))] pub String);

/// The disk that machines start from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpBootDisk {
    /// The size of the disk in GB.
    #[serde(rename = "diskSizeGB", default = "default_disk_size")]
    #[schemars(range(min = 20, max = 65536))]
    pub disk_size_gb: i64,
    /// The kind of disk.
    #[serde(default)]
    pub disk_type: GcpDiskType,
    /// The key that encrypts the disk. Unset: Google Cloud's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_key: Option<GcpDiskEncryptionKey>,
}

/// A kind of disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GcpDiskType {
    /// Hard disks.
    #[serde(rename = "pd-standard")]
    Standard,
    /// Fast solid-state disks.
    #[serde(rename = "pd-ssd")]
    Ssd,
    /// Solid-state disks at a medium price.
    #[default]
    #[serde(rename = "pd-balanced")]
    Balanced,
}

/// A key of the Cloud Key Management Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpDiskEncryptionKey {
    /// The full name of the key.
    #[schemars(
        length(min = 1, max = 2048),
        transform = rule(
            "self.matches('^projects/[a-z][-0-9a-z]{4,28}[0-9a-z]/locations/[-0-9a-z]+/keyRings/[-_0-9A-Za-z]+/cryptoKeys/[-_0-9A-Za-z]+$')",
            "kmsKeyName must be of the form projects/<project>/locations/<location>/keyRings/<ring>/cryptoKeys/<key>"
        ),
    )]
    pub kms_key_name: String,
}

/// The service account of machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcpNodeServiceAccount {
    /// Its e-mail address. Unset: the default service account of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 37, max = 85), transform = email)]
    pub email: Option<String>,
    /// What processes on the machines may do with it, as OAuth scopes. Unset: read from storage, write logs, metrics and
    /// traces, and what services need to report themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 50), inner(length(max = 512)), transform = set)]
    pub scopes: Vec<String>,
}

/// Whether Google Cloud may take machines back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GcpProvisioningModel {
    /// It may not.
    #[default]
    Standard,
    /// It may at any time, at a lower price.
    Spot,
    /// It may at any time, and does after 24 hours.
    Preemptible,
}

/// What happens to a machine while its host is maintained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum GcpOnHostMaintenance {
    /// It moves to another host while it runs.
    Migrate,
    /// It is stopped.
    Terminate,
}

fn default_disk_size() -> i64 {
    64
}

impl Default for GcpBootDisk {
    fn default() -> Self {
        Self {
            disk_size_gb: default_disk_size(),
            disk_type: GcpDiskType::default(),
            encryption_key: None,
        }
    }
}
