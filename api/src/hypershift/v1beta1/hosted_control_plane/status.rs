//! What a control plane is.

use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::auto_node::AutoNodeStatus;
use crate::hypershift::v1beta1::cluster_status::{ApiEndpoint, PlatformStatus};
use crate::hypershift::v1beta1::configuration::authentication::status::ConfigurationStatus;
use crate::hypershift::v1beta1::references::KubeconfigSecretReference;
use crate::hypershift::v1beta1::secret_encryption::status::SecretEncryptionStatus;
use crate::hypershift::v1beta1::versions::{ClusterVersionStatus, ControlPlaneVersionStatus};
use crate::schema::{self, list_map, no_format};

/// What the control plane is.
/// `ready`, `initialized` and `externalManagedControlPlane` are what Cluster API reads of a
/// control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostedControlPlaneStatus {
    /// Whether the API server can be used.
    #[schemars(extend("default" = false))]
    pub ready: bool,
    /// Whether the control plane was there once, so that nodes can be made.
    #[schemars(extend("default" = false))]
    pub initialized: bool,
    /// Whether the control plane runs elsewhere than on machines of the cluster. It always does.
    #[serde(default = "external_managed")]
    pub external_managed_control_plane: bool,
    /// Where the API server is reached. Cluster API takes it over into its Cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// URL to register at identity providers; put the provider's name in place of
    /// `[identity-provider-name]`.
    #[serde(
        rename = "oauthCallbackURLTemplate",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 255))]
    pub oauth_callback_url_template: Option<String>,
    /// Which release the nodes' side of the cluster runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_status: Option<ClusterVersionStatus>,
    /// Deprecated: the version that runs. `versionStatus` says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub version: Option<String>,
    /// Deprecated: the image of the release that runs. `versionStatus` says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub release_image: Option<String>,
    /// Deprecated: when the release last changed. `versionStatus` says more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub last_release_image_transition_time: Option<Time>,
    /// Which release the control plane runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_version: Option<ControlPlaneVersionStatus>,
    /// Where the administrator's kubeconfig is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeconfigSecretReference>,
    /// Where the kubeconfig for the name in `spec.kubeAPIServerDNSName` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_kubeconfig: Option<KubeconfigSecretReference>,
    /// Secret with the password of the user `kubeadmin`, under the key `password`. It is absent
    /// when users log in with OIDC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub kubeadmin_password: Option<LocalObjectReference>,
    /// State of the control plane in its aspects. The HostedCluster takes most of them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>", length(max = 100), transform = list_map(["type"]))]
    pub conditions: Vec<Condition>,
    /// How many nodes the cluster has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = no_format)]
    pub node_count: Option<i64>,
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
}

fn external_managed() -> bool {
    true
}
