//! Where API servers of hosted clusters keep their audit logs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::hypershift::v1beta1::common::{Duration, Quantity};
use crate::schema::{self, list_map};

/// Whether and how audit logs are kept.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "auditlogpersistence.hypershift.openshift.io",
    version = "v1alpha1",
    kind = "AuditLogPersistenceConfig",
    doc = "Where API servers of hosted clusters keep their audit logs.",
    status = "AuditLogPersistenceConfigStatus",
    derive = "PartialEq",
    shortname = "alpc",
    shortname = "alpcs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogPersistenceConfigSpec {
    /// Keeps audit logs on volumes. Unset means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<AuditLogStorage>,
    /// How log files are rotated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_log: Option<AuditLogRotation>,
    /// Snapshots of the volumes of API servers that crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<AuditLogSnapshots>,
}

/// The volumes that hold audit logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogStorage {
    /// The storage class. Unset: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// The size of a volume. Unset: 5Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
}

/// How log files are rotated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogRotation {
    /// The size in megabytes at which a new file begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_size: Option<i32>,
    /// How many older files are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_backup: Option<i32>,
}

/// Snapshots of the volumes of API servers that crash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogSnapshots {
    /// Takes a snapshot when an API server restarts. Unset means false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The least time between two snapshots of one pod, such as `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^([0-9]+(ns|us|µs|ms|s|m|h))+$"))]
    pub min_interval: Option<Duration>,
    /// How many snapshots of one pod are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub per_pod_retention_count: Option<i32>,
    /// How many snapshots of one hosted control plane are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub namespace_retention_count: Option<i32>,
    /// The class of the snapshots. Unset: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_class_name: Option<String>,
}

/// Whether audit logs are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditLogPersistenceConfigStatus {
    /// Whether audit logs are kept, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
}

impl Kind for AuditLogPersistenceConfig {
    const DESCRIPTION: &'static str = "Where API servers of hosted clusters keep their audit logs, beyond the life of a pod. There is one, with the name cluster.";
    const RULES: &'static [(&'static str, &'static str)] = &[(
        "self.metadata.name == 'cluster'",
        "there is one AuditLogPersistenceConfig: name it cluster",
    )];
}
