//! Further clusters of etcd for some resources. They are part of the technology preview.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::schema::{self, atomic_list, immutable, list_map, rule, with};

/// An etcd for some resources, which HyperShift runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    transform = rule(
        "has(self.storage) == has(oldSelf.storage)",
        "the storage of a shard is fixed when the cluster is created; do not add or remove storage \
         later"
    ),
)]
pub struct ManagedEtcdShard {
    /// Name of the shard. It cannot be changed later.
    #[schemars(
        length(min = 1, max = 48),
        transform = shard_name,
        transform = immutable("the name of a shard cannot change; put back the name that it had"),
    )]
    pub name: String,
    /// Resources that are kept in the shard. They cannot be changed later.
    #[schemars(
        length(min = 1, max = 20),
        transform = list_map(["apiGroup", "resource"]),
        transform = immutable(RESOURCES_ARE_FIXED),
    )]
    pub resources: Vec<EtcdShardResource>,
    /// Number of members: 1 or 3. It cannot be changed later.
    #[schemars(
        range(min = 1),
        extend("enum" = [1, 3]),
        transform = immutable(
            "the number of members of a shard is fixed when the cluster is created; put back \
             replicas"
        ),
    )]
    pub replicas: i32,
    /// Where its data is stored. Without it, as the data of the main etcd. It cannot be changed
    /// later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "the storage of a shard is fixed when the cluster is created; put back storage as it \
             was"
        ),
    )]
    pub storage: Option<EtcdShardStorage>,
    /// Nodes of the management cluster that the shard runs on. Without it, as the main etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<EtcdScheduling>,
}

/// An etcd for some resources that exists already, and that others look after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmanagedEtcdShard {
    /// Name of the shard. It cannot be changed later.
    #[schemars(
        length(min = 1, max = 48),
        transform = shard_name,
        transform = immutable("the name of a shard cannot change; put back the name that it had"),
    )]
    pub name: String,
    /// Resources that are kept in the shard. They cannot be changed later.
    #[schemars(
        length(min = 1, max = 20),
        transform = list_map(["apiGroup", "resource"]),
        transform = immutable(RESOURCES_ARE_FIXED),
    )]
    pub resources: Vec<EtcdShardResource>,
    /// URL of the shard's client endpoint, for example `https://etcd-events:2379`. It cannot be
    /// changed later.
    #[schemars(
        length(min = 1, max = 267),
        transform = rule(
            "isURL(self) && url(self).getScheme() == 'https'",
            "endpoint must be a URL that begins with https://"
        ),
        transform = immutable("the endpoint of a shard cannot change; put back the URL that it had"),
    )]
    pub endpoint: String,
}

/// A resource of the API, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdShardResource {
    /// API group of the resource; empty for the core group.
    #[schemars(
        length(min = 0, max = 253),
        transform = rule(
            "self == '' || self.matches('^[0-9a-z]([-0-9a-z]*[0-9a-z])?([.][0-9a-z]([-0-9a-z]*[0-9a-z])?)*$')",
            "apiGroup must be the name of an API group, such as apps, or empty for the core group"
        ),
    )]
    pub api_group: String,
    /// Name of the resource in lower case and plural, for example `events`.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[0-9a-z]([-0-9a-z]*[0-9a-z])?$')",
            "resource must be the name of a resource in lower case and plural, such as events"
        ),
    )]
    pub resource: String,
}

/// Where the data of a shard is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.type == 'PersistentVolume' || !has(self.persistentVolume)",
        "persistentVolume is allowed with type PersistentVolume only; remove it or correct type"
    ),
)]
pub struct EtcdShardStorage {
    /// Kind of storage.
    #[serde(rename = "type")]
    pub type_: EtcdShardStorageType,
    /// The volume of each member, when `type` is `PersistentVolume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<EtcdShardVolume>,
}

/// A kind of storage of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EtcdShardStorageType {
    /// A persistent volume for each member.
    PersistentVolume,
    /// A directory that is deleted with the pod: for data that may be lost, such as events.
    EmptyDir,
}

/// The volume of a shard's member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct EtcdShardVolume {
    /// Storage class of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^[0-9a-z]([-.0-9a-z]*[0-9a-z])?$')",
            "storageClassName must be the name of a StorageClass: lower-case letters, digits, \
             hyphens and periods"
        ),
    )]
    pub storage_class_name: Option<String>,
}

/// Nodes of the management cluster that an etcd runs on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct EtcdScheduling {
    /// Labels of the nodes, in place of those in `spec.nodeSelector`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = with("minProperties", 1), transform = with("maxProperties", 16))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of the nodes that the pods tolerate, in addition to those in `spec.tolerations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Toleration>",
        length(min = 1, max = 16),
        transform = atomic_list,
    )]
    pub tolerations: Vec<Toleration>,
}

const RESOURCES_ARE_FIXED: &str = "the resources of a shard are fixed when the cluster is created; put back resources as they were";

/// The shards of an etcd: a fixed list in which no resource is twice.
pub(crate) fn shards(schema: &mut Schema) {
    list_map(["name"])(schema);
    rule(
        "self.all(a, self.all(b, a.name == b.name || a.resources.all(x, !b.resources.exists(y, \
         x.apiGroup == y.apiGroup && x.resource == y.resource))))",
        "a resource can be kept in one shard only; remove it from the others",
    )(schema);
    rule(
        "self.size() == oldSelf.size()",
        "shards cannot be added or removed later; create a new cluster with other shards",
    )(schema);
    rule(
        "oldSelf.all(old, self.exists(it, it.name == old.name))",
        "shards keep their names; put back the shards that there were",
    )(schema);
}

fn shard_name(schema: &mut Schema) {
    rule(
        "self.matches('^[0-9a-z]([-0-9a-z]*[0-9a-z])?$')",
        "the name of a shard must be lower-case letters, digits and hyphens, with no hyphen at \
         either end",
    )(schema);
}
