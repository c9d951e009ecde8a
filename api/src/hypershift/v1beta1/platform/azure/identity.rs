//! How components of a hosted cluster authenticate to Azure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::azure_client_id::AzureClientId;
use crate::schema::rule;

/// How components of a hosted cluster authenticate to Azure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.azureAuthenticationConfigType == 'ManagedIdentities') == \
         has(self.managedIdentities)",
        "managedIdentities is required with type ManagedIdentities and not allowed otherwise; add \
         it, remove it or correct azureAuthenticationConfigType"
    ),
    transform = rule(
        "(self.azureAuthenticationConfigType == 'WorkloadIdentities') == \
         has(self.workloadIdentities)",
        "workloadIdentities is required with type WorkloadIdentities and not allowed otherwise; \
         add it, remove it or correct azureAuthenticationConfigType"
    ),
)]
pub struct AzureAuthenticationConfiguration {
    /// The way to authenticate: `ManagedIdentities` for the managed service, `WorkloadIdentities`
    /// for a cluster of one's own.
    pub azure_authentication_config_type: AzureAuthenticationType,
    /// Identities with certificates in a key vault, when the type is `ManagedIdentities`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_identities: Option<AzureManagedIdentities>,
    /// Identities that trust the cluster's OIDC issuer, when the type is `WorkloadIdentities`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_identities: Option<AzureWorkloadIdentities>,
}

/// Identities with certificates in a key vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureManagedIdentities {
    /// Identities of components that run in the control plane, with the certificates that they log
    /// in with.
    pub control_plane: AzureControlPlaneManagedIdentities,
    /// Identities of components that run on the nodes.
    pub data_plane: AzureDataPlaneManagedIdentities,
}

/// Identities of components that run in the control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureControlPlaneManagedIdentities {
    /// The key vault that holds their certificates, which are mounted into the pods.
    pub managed_identities_key_vault: AzureManagedIdentitiesKeyVault,
    /// Identity of the cloud controller manager, which keeps nodes and load balancers up to date.
    pub cloud_provider: AzureManagedIdentity,
    /// Identity of the Cluster API provider, which creates and deletes virtual machines.
    pub node_pool_management: AzureManagedIdentity,
    /// Identity of the control plane operator, which creates private connections.
    pub control_plane_operator: AzureManagedIdentity,
    /// Identity of the image registry operator, which keeps images in a storage account.
    /// Leave it out when the capability `ImageRegistry` is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_registry: Option<AzureManagedIdentity>,
    /// Identity of the ingress operator, which writes DNS records.
    pub ingress: AzureManagedIdentity,
    /// Identity of the network operator's cloud controller, which assigns addresses to nodes.
    pub network: AzureManagedIdentity,
    /// Identity of the disk storage driver, which creates and attaches disks.
    pub disk: AzureManagedIdentity,
    /// Identity of the file storage driver, which creates file shares.
    pub file: AzureManagedIdentity,
}

/// An identity with a certificate in a key vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureManagedIdentity {
    /// Client ID of the identity; optional where the credential in the vault holds it.
    #[serde(rename = "clientID", skip_serializing_if = "Option::is_none")]
    pub client_id: Option<AzureClientId>,
    /// Name of the vault's secret that holds the identity's credential.
    #[schemars(length(min = 1, max = 127), regex(pattern = "^[a-zA-Z0-9-]+$"))]
    pub credentials_secret_name: String,
    /// How the secret's content is encoded. Certificates of a vault are `utf-8`.
    pub object_encoding: AzureObjectEncoding,
}

/// A key vault with certificates of identities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureManagedIdentitiesKeyVault {
    /// Name of the vault.
    #[schemars(length(max = 255))]
    pub name: String,
    /// ID of the Entra tenant that the vault belongs to.
    #[serde(rename = "tenantID")]
    #[schemars(length(max = 255))]
    pub tenant_id: String,
}

/// Identities of components that run on the nodes, by client ID.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureDataPlaneManagedIdentities {
    /// Client ID of the identity of the image registry.
    #[serde(rename = "imageRegistryMSIClientID")]
    #[schemars(length(max = 255))]
    pub image_registry_msi_client_id: String,
    /// Client ID of the identity of the disk storage driver.
    #[serde(rename = "diskMSIClientID")]
    #[schemars(length(max = 255))]
    pub disk_msi_client_id: String,
    /// Client ID of the identity of the file storage driver.
    #[serde(rename = "fileMSIClientID")]
    #[schemars(length(max = 255))]
    pub file_msi_client_id: String,
}

/// Identities that trust the cluster's OIDC issuer, one for each job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureWorkloadIdentities {
    /// Identity of the cloud controller manager, which keeps nodes and load balancers up to date.
    pub cloud_provider: AzureWorkloadIdentity,
    /// Identity of the Cluster API provider, which creates and deletes virtual machines.
    pub node_pool_management: AzureWorkloadIdentity,
    /// Identity of the control plane operator, which creates the endpoint and the DNS zone of a
    /// private link. It is not needed for other purposes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_operator: Option<AzureWorkloadIdentity>,
    /// Identity of the image registry operator, which keeps images in a storage account.
    pub image_registry: AzureWorkloadIdentity,
    /// Identity of the ingress operator, which writes DNS records.
    pub ingress: AzureWorkloadIdentity,
    /// Identity of the network operator's cloud controller, which assigns addresses to nodes.
    pub network: AzureWorkloadIdentity,
    /// Identity of the disk storage driver, which creates and attaches disks.
    pub disk: AzureWorkloadIdentity,
    /// Identity of the file storage driver, which creates file shares.
    pub file: AzureWorkloadIdentity,
}

/// An identity that trusts the cluster's OIDC issuer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureWorkloadIdentity {
    /// Client ID of the identity.
    #[serde(rename = "clientID")]
    pub client_id: AzureClientId,
}

/// A way to authenticate to Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureAuthenticationType {
    /// With certificates from a key vault; for the managed service.
    ManagedIdentities,
    /// With tokens of the cluster's service accounts; for clusters of one's own.
    WorkloadIdentities,
}

/// An encoding of secrets in a key vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureObjectEncoding {
    /// Text.
    #[serde(rename = "utf-8")]
    Utf8,
    /// Hexadecimal digits.
    #[serde(rename = "hex")]
    Hex,
    /// Base64.
    #[serde(rename = "base64")]
    Base64,
}
