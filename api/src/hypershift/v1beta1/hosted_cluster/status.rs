//! What a hosted cluster is.

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::auto_node::AutoNodeStatus;
use crate::hypershift::v1beta1::cluster_status::{ApiEndpoint, PlatformStatus};
use crate::hypershift::v1beta1::configuration::authentication::status::ConfigurationStatus;
use crate::hypershift::v1beta1::hcp_etcd_backup::snapshot_url;
use crate::hypershift::v1beta1::secret_encryption::status::SecretEncryptionStatus;
use crate::hypershift::v1beta1::versions::{ClusterVersionStatus, ControlPlaneVersionStatus};
use crate::schema::{self, list_map, tech_preview};

/// What the cluster is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedClusterStatus {
    /// Which release the nodes' side of the cluster runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ClusterVersionStatus>,
    /// Which release the control plane runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_version: Option<ControlPlaneVersionStatus>,
    /// Secret with the administrator's kubeconfig, under the key `kubeconfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub kubeconfig: Option<LocalObjectReference>,
    /// Secret with a kubeconfig for the name in `spec.kubeAPIServerDNSName`, under the key
    /// `kubeconfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub custom_kubeconfig: Option<LocalObjectReference>,
    /// Secret with the password of the user `kubeadmin`, under the key `password`. It is absent
    /// when users log in with OIDC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub kubeadmin_password: Option<LocalObjectReference>,
    /// Host name of the server that gives new nodes their configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub ignition_endpoint: Option<String>,
    /// Where the API server is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// URL to register at identity providers; put the provider's name in place of
    /// `[identity-provider-name]`.
    #[serde(
        rename = "oauthCallbackURLTemplate",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 1024))]
    pub oauth_callback_url_template: Option<String>,
    /// State of the cluster in its aspects: `Available` says whether the control plane can be used,
    /// `Progressing` whether a change is being carried out, `Degraded` whether something is amiss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", length(max = 100), transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
    /// Architectures that the release is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_arch: Option<PayloadArch>,
    /// What was found out, or made, on the infrastructure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<PlatformStatus>,
    /// What Karpenter has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_node: Option<AutoNodeStatus>,
    /// What became of the OpenShift configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationStatus>,
    /// Which key encrypts Secrets, and the progress of a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_encryption: Option<SecretEncryptionStatus>,
    /// URL of the last backup of etcd that was completed.
    #[serde(
        rename = "lastSuccessfulEtcdBackupURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 2048),
        transform = snapshot_url,
        transform = tech_preview,
    )]
    pub last_successful_etcd_backup_url: Option<String>,
}

/// Architectures that a release is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PayloadArch {
    /// All of them.
    Multi,
    /// 64-bit ARM.
    #[serde(rename = "ARM64")]
    Arm64,
    /// 64-bit x86.
    #[serde(rename = "AMD64")]
    Amd64,
    /// Power, little-endian.
    #[serde(rename = "PPC64LE")]
    Ppc64le,
    /// IBM Z.
    #[serde(rename = "S390X")]
    S390x,
}
