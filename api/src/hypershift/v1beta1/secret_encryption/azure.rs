//! Encryption of Secrets by Azure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::platform::azure::identity::{
    AzureManagedIdentity, AzureWorkloadIdentity,
};
use crate::schema::rule;

/// Encryption by a key in an Azure key vault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "!has(self.backupKey) || self.activeKey.keyVaultName == self.backupKey.keyVaultName",
        "backupKey and activeKey must be in the same key vault; name the vault of activeKey in \
         both"
    ),
    transform = rule(
        "(has(oldSelf.keyVaultType) && oldSelf.keyVaultType == 'ManagedHSM') == \
         (has(self.keyVaultType) && self.keyVaultType == 'ManagedHSM')",
        "the type of key vault cannot change; put back keyVaultType as it was"
    ),
    transform = rule(
        "!has(self.kms) || !has(self.workloadIdentity)",
        "kms and workloadIdentity exclude each other; keep the one that the cluster's \
         authentication uses"
    ),
    transform = rule(
        "has(self.workloadIdentity) || has(self.kms)",
        "the identity that uses the key is missing; add kms for managed identities or \
         workloadIdentity for workload identities"
    ),
    transform = rule(
        "has(oldSelf.kms) ? has(self.kms) : !has(self.kms)",
        "kms cannot be added or removed later; keep the kind of identity that the cluster was \
         created with"
    ),
)]
pub struct AzureKmsSpec {
    /// The key to encrypt with.
    /// To rotate, name another key or version here; everything is then encrypted again.
    pub active_key: AzureKmsKey,
    /// Deprecated: keys are rotated without it. It named the previous key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_key: Option<AzureKmsKey>,
    /// The managed identity that uses the key, on clusters with managed identities.
    /// It needs the rights to get, encrypt and decrypt with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms: Option<AzureManagedIdentity>,
    /// The workload identity that uses the key, on clusters with workload identities.
    /// It needs the rights to get, encrypt and decrypt with the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_identity: Option<AzureWorkloadIdentity>,
    /// What kind of vault holds the key; without a value it is an ordinary key vault. It cannot be
    /// changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_vault_type: Option<AzureKeyVaultType>,
    /// Whether the vault is reached over the internet or through a private endpoint. Without a
    /// value it is the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_vault_access: Option<AzureKeyVaultAccess>,
}

/// A key in an Azure key vault.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureKmsKey {
    /// Name of the vault, or of the managed HSM.
    #[schemars(length(min = 1, max = 255))]
    pub key_vault_name: String,
    /// Name of the key.
    #[schemars(length(min = 1, max = 255))]
    pub key_name: String,
    /// Version of the key.
    #[schemars(length(min = 1, max = 255))]
    pub key_version: String,
}

/// A kind of key vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureKeyVaultType {
    /// An ordinary key vault.
    KeyVault,
    /// A managed hardware security module. It needs release 4.22 or newer.
    #[serde(rename = "ManagedHSM")]
    ManagedHsm,
}

/// How a key vault is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureKeyVaultAccess {
    /// Over the internet.
    Public,
    /// Through a private endpoint.
    Private,
    /// As if nothing were said: over the internet.
    #[serde(rename = "")]
    Unset,
}
