//! The active encryption key, and the progress of a rotation.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::secret_encryption::AwsKmsKeyEntry;
use crate::hypershift::v1beta1::secret_encryption::azure::AzureKmsKey;
use crate::hypershift::v1beta1::secret_encryption::ibm_cloud::IbmCloudKmsKeyEntry;
use crate::schema::{self, atomic_list, rule, with};

/// Which key encrypts Secrets, and the progress of a rotation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct SecretEncryptionStatus {
    /// The key that all Secrets were last encrypted with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_key: Option<SecretEncryptionKeyStatus>,
    /// The key that a rotation is moving to; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_key: Option<SecretEncryptionKeyStatus>,
    /// Rotations, newest first. The last five are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 5), transform = atomic_list)]
    pub history: Vec<EncryptionMigrationHistory>,
}

/// A key, by where it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.provider == 'Azure') == has(self.azure)",
        "azure describes the key exactly when provider is Azure; set the member that belongs to \
         provider"
    ),
    transform = rule(
        "(self.provider == 'AWS') == has(self.aws)",
        "aws describes the key exactly when provider is AWS; set the member that belongs to \
         provider"
    ),
    transform = rule(
        "(self.provider == 'IBMCloud') == has(self.ibmCloud)",
        "ibmCloud describes the key exactly when provider is IBMCloud; set the member that belongs \
         to provider"
    ),
    transform = rule(
        "(self.provider == 'AESCBC') == has(self.aescbc)",
        "aescbc describes the key exactly when provider is AESCBC; set the member that belongs to \
         provider"
    ),
)]
pub struct SecretEncryptionKeyStatus {
    /// Where the key is kept.
    pub provider: SecretEncryptionProvider,
    /// The key, when it is in an Azure key vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureKmsKey>,
    /// The key, when it is in the key management service of AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsKmsKeyEntry>,
    /// The key, when it is in IBM Cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ibm_cloud: Option<IbmCloudKmsKeyEntry>,
    /// The key, when it is in a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aescbc: Option<AescbcKeyStatus>,
}

/// A key in a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AescbcKeyStatus {
    /// The Secret that holds it.
    pub secret: AescbcKeySecretReference,
    /// Hash of the key, by which a changed Secret is noticed.
    #[schemars(length(min = 1, max = 64))]
    pub data_hash: String,
}

/// A Secret with a key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AescbcKeySecretReference {
    /// Name of the Secret.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.split('.').all(label, label.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",
            "name must be the name of a Secret: lower-case letters, digits and hyphens, in parts \
             that are separated by periods"
        ),
    )]
    pub name: String,
}

/// One rotation of the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionMigrationHistory {
    /// How far it is, or how it ended.
    pub state: EncryptionMigrationState,
    /// When it began.
    #[schemars(with = "schema::Time")]
    pub started_time: Time,
    /// When it ended; absent while it is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Time>")]
    pub completion_time: Option<Time>,
    /// The key before.
    pub from: EncryptionKeyReference,
    /// The key after.
    pub to: EncryptionKeyReference,
}

/// A key, by its fingerprint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionKeyReference {
    /// Where the key is kept.
    pub provider: SecretEncryptionProvider,
    /// Hash that identifies the key.
    #[schemars(length(min = 1, max = 64))]
    pub fingerprint: String,
}

/// Where a key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SecretEncryptionProvider {
    /// An Azure key vault.
    Azure,
    /// The key management service of AWS.
    #[serde(rename = "AWS")]
    Aws,
    /// A key service of IBM Cloud.
    #[serde(rename = "IBMCloud")]
    IbmCloud,
    /// A Secret.
    #[serde(rename = "AESCBC")]
    Aescbc,
}

/// How far a rotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EncryptionMigrationState {
    /// API servers are learning to read with the new key.
    ReadOnlyDeploy,
    /// API servers are starting to write with the new key.
    WritePromote,
    /// Everything is being written again with the new key.
    Migrating,
    /// Everything is encrypted with the new key.
    Completed,
    /// Another key was chosen before everything was written again.
    Interrupted,
}
