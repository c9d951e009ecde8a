//! A hosted cluster on KubeVirt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::references::KubeconfigSecretReference;
use crate::schema::{immutable, rule};

/// Settings for nodes that are virtual machines on a cluster with KubeVirt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.generateID) || !has(oldSelf.generateID)",
        "generateID cannot be removed; put back the value that it had"
    ),
)]
pub struct KubevirtPlatformSpec {
    /// Whether the cluster's domain is made from the domain of the infrastructure cluster's routes.
    /// If so, `dns.baseDomain` may stay empty, and traffic for the cluster's applications is passed
    /// through by that cluster.
    /// It is decided when the cluster is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "baseDomainPassthrough is decided when the cluster is created; leave it as it is"
        ),
    )]
    pub base_domain_passthrough: Option<bool>,
    /// Suffix that distinguishes this cluster's domain from others when `baseDomainPassthrough` is on, 11
    /// characters at most.
    /// It is generated when nothing is given, and then stays.
    #[serde(rename = "generateID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 11),
        transform = immutable("generateID is fixed once it is set; put back the value that it had"),
    )]
    pub generate_id: Option<String>,
    /// Access to another cluster that runs the virtual machines.
    /// Without it they run on the management cluster, in the namespace of the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<KubevirtPlatformCredentials>,
    /// Which storage classes of the infrastructure cluster the hosted cluster may use. It is
    /// decided when the cluster is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "the storage driver is set up when the cluster is created; leave it as it is"
        ),
    )]
    pub storage_driver: Option<KubevirtStorageDriverSpec>,
}

/// Access to the cluster that runs the virtual machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtPlatformCredentials {
    /// Secret in the HostedCluster's namespace that holds the kubeconfig for that cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "infraKubeConfigSecret cannot change: the cluster that runs the virtual machines \
             cannot be exchanged; create a new HostedCluster to use another one"
        ),
    )]
    pub infra_kube_config_secret: Option<KubeconfigSecretReference>,
    /// Namespace of that cluster in which the virtual machines are created.
    /// The kubeconfig must allow to manage virtual machines, data volumes and Services there.
    #[schemars(
        length(max = 255),
        transform = immutable(
            "infraNamespace cannot change: the namespace of the virtual machines is fixed when the \
             cluster is created; leave it as it is"
        ),
    )]
    pub infra_namespace: String,
}

/// How storage of the infrastructure cluster is offered in the hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtStorageDriverSpec {
    /// `Default` offers the infrastructure cluster's default storage class, `Manual` what `manual`
    /// lists, `None` nothing.
    #[serde(rename = "type", default)]
    #[schemars(
        transform = immutable(
            "the kind of storage driver is chosen when the cluster is created; leave it as it is"
        ),
    )]
    pub type_: KubevirtStorageDriverType,
    /// Storage classes to offer, when `type` is `Manual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "the list of storage classes is made when the cluster is created; leave it as it is"
        ),
    )]
    pub manual: Option<KubevirtManualStorageDriver>,
}

/// Mapping of the classes of the infrastructure cluster to those of the hosted cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtManualStorageDriver {
    /// Storage classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        transform = immutable(
            "storage classes are mapped when the cluster is created; leave the mapping as it is"
        ),
    )]
    pub storage_class_mapping: Vec<KubevirtStorageClassMapping>,
    /// Volume snapshot classes. Snapshots work for storage classes of the same group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        transform = immutable(
            "volume snapshot classes are mapped when the cluster is created; leave the mapping as \
             it is"
        ),
    )]
    pub volume_snapshot_class_mapping: Vec<KubevirtVolumeSnapshotClassMapping>,
}

/// A storage class of the infrastructure cluster that the hosted cluster may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtStorageClassMapping {
    /// Name that ties this class to the volume snapshot classes that work with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub group: Option<String>,
    /// Name of the class in the infrastructure cluster.
    #[schemars(length(max = 255))]
    pub infra_storage_class_name: String,
    /// Name of the class in the hosted cluster; it is created there.
    #[schemars(length(max = 255))]
    pub guest_storage_class_name: String,
}

/// A volume snapshot class of the infrastructure cluster that the hosted cluster may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtVolumeSnapshotClassMapping {
    /// Name that ties this class to the storage classes that it works with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub group: Option<String>,
    /// Name of the class in the infrastructure cluster.
    #[schemars(length(max = 255))]
    pub infra_volume_snapshot_class_name: String,
    /// Name of the class in the hosted cluster; it is created there.
    #[schemars(length(max = 255))]
    pub guest_volume_snapshot_class_name: String,
}

/// Which storage is offered in the hosted cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KubevirtStorageDriverType {
    /// None.
    None,
    /// The infrastructure cluster's default storage class.
    #[default]
    Default,
    /// The classes that are listed.
    Manual,
}
