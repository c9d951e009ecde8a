//! The etcd of a control plane.

pub mod backup;
pub mod shards;

use k8s_openapi::api::core::v1::LocalObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::common::Quantity;
use crate::hypershift::v1beta1::etcd::backup::ManagedEtcdBackup;
use crate::hypershift::v1beta1::etcd::shards::{
    EtcdScheduling, ManagedEtcdShard, UnmanagedEtcdShard, shards,
};
use crate::schema::{self, immutable, preview_rule, rule, set, tech_preview};

/// Where a control plane keeps its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.managementType == 'Managed') == has(self.managed)",
        "managed is required with managementType Managed and not allowed otherwise; add it, remove \
         it or correct managementType"
    ),
    transform = rule(
        "(self.managementType == 'Unmanaged') == has(self.unmanaged)",
        "unmanaged is required with managementType Unmanaged and not allowed otherwise; add it, \
         remove it or correct managementType"
    ),
)]
pub struct EtcdSpec {
    /// Who runs etcd: `Managed` lets HyperShift do it, `Unmanaged` uses a cluster of etcd that
    /// exists.
    /// It cannot be changed later.
    #[schemars(
        transform = immutable(
            "who runs etcd is decided when the cluster is created; create a new cluster to change \
             it"
        ),
    )]
    pub management_type: EtcdManagementType,
    /// Settings of an etcd that HyperShift runs, when `managementType` is `Managed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<ManagedEtcdSpec>,
    /// Where an existing etcd is, when `managementType` is `Unmanaged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmanaged: Option<UnmanagedEtcdSpec>,
}

/// An etcd that HyperShift runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = preview_rule(
    "has(self.shards) == has(oldSelf.shards)",
    "shards are chosen when the cluster is created; do not add or remove shards later"
))]
pub struct ManagedEtcdSpec {
    /// Where its data is stored.
    pub storage: ManagedEtcdStorageSpec,
    /// The key that encrypts backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub backup: Option<ManagedEtcdBackup>,
    /// Nodes of the management cluster that etcd runs on. Without it, as the other components of
    /// the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = tech_preview)]
    pub scheduling: Option<EtcdScheduling>,
    /// Further clusters of etcd, each for some resources. They are chosen when the cluster is
    /// created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 10), transform = shards, transform = tech_preview)]
    pub shards: Vec<ManagedEtcdShard>,
}

/// Where the data of an etcd is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(oldSelf.restoreSnapshotURL) ? \
         has(self.restoreSnapshotURL) : !has(self.restoreSnapshotURL)",
        "restoreSnapshotURL is read when the cluster is created; do not add or remove it later"
    ),
)]
pub struct ManagedEtcdStorageSpec {
    /// Kind of storage. `PersistentVolume` is the only one.
    #[serde(rename = "type")]
    pub type_: ManagedEtcdStorageType,
    /// The volume of each member, when `type` is `PersistentVolume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<PersistentVolumeEtcdStorageSpec>,
    /// URL of a snapshot that a new cluster's data is restored from: `https://`, where a pre-signed
    /// URL is usual, or `s3://`.
    /// It is read when the cluster is created, and never again.
    #[serde(
        rename = "restoreSnapshotURL",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(max = 1),
        inner(length(max = 1024)),
        transform = rule(
            "self.size() < 2",
            "there can be one snapshot to restore from; remove the others"
        ),
        transform = immutable(
            "a snapshot is restored when the cluster is created; create a new cluster to restore \
             another one"
        ),
        transform = rule(
            "self.all(url, url.startsWith('https://') || url.startsWith('s3://'))",
            "the snapshot's URL must begin with https:// or s3://"
        ),
        transform = set,
    )]
    pub restore_snapshot_url: Vec<String>,
}

/// The volume of an etcd member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolumeEtcdStorageSpec {
    /// Storage class of the volume; without a value it is the default class of the management
    /// cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the storage class of etcd's volumes is fixed when the cluster is created; create a \
             new cluster to use another one"
        ),
    )]
    pub storage_class_name: Option<String>,
    /// Size of the volume, 8Gi unless said otherwise. It cannot be changed later.
    #[serde(default = "default_etcd_volume_size")]
    #[schemars(
        transform = immutable(
            "the size of etcd's volumes is fixed when the cluster is created; create a new cluster \
             with larger ones"
        ),
    )]
    pub size: Quantity,
}

/// An etcd that exists already, and that others look after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = preview_rule(
    "has(self.shards) == has(oldSelf.shards)",
    "shards are chosen when the cluster is created; do not add or remove shards later"
))]
pub struct UnmanagedEtcdSpec {
    /// URL of the etcd's client endpoint, for example `https://etcd-client:2379`.
    /// Certificates of the etcd must name its host.
    #[schemars(length(max = 255), regex(pattern = "^https://"))]
    pub endpoint: String,
    /// Certificates for the connection.
    pub tls: EtcdTlsConfig,
    /// Further clusters of etcd, each for some resources. They are chosen when the cluster is
    /// created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 10), transform = shards, transform = tech_preview)]
    pub shards: Vec<UnmanagedEtcdShard>,
}

/// Certificates for the connection to an etcd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdTlsConfig {
    /// Secret in the HostedCluster's namespace with three keys: `etcd-client.crt` and
    /// `etcd-client.key` are the client's certificate and key, `etcd-client-ca.crt` verifies the
    /// server.
    #[schemars(with = "schema::LocalObjectReference")]
    pub client_secret: LocalObjectReference,
}

/// Who runs an etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EtcdManagementType {
    /// HyperShift does.
    Managed,
    /// Users manage it.
    Unmanaged,
}

/// A kind of storage for etcd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ManagedEtcdStorageType {
    /// A persistent volume for each member.
    #[default]
    PersistentVolume,
}

fn default_etcd_volume_size() -> Quantity {
    Quantity("8Gi".into())
}

/// An etcd that HyperShift runs, on volumes of 8Gi.
impl Default for EtcdSpec {
    fn default() -> Self {
        Self {
            management_type: EtcdManagementType::Managed,
            managed: Some(ManagedEtcdSpec {
                storage: ManagedEtcdStorageSpec {
                    type_: ManagedEtcdStorageType::PersistentVolume,
                    persistent_volume: Some(PersistentVolumeEtcdStorageSpec {
                        storage_class_name: None,
                        size: default_etcd_volume_size(),
                    }),
                    restore_snapshot_url: Vec::new(),
                },
                backup: None,
                scheduling: None,
                shards: Vec::new(),
            }),
            unmanaged: None,
        }
    }
}
