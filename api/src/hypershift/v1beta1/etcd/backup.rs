//! Keys for backups of etcd. They are part of the technology preview.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// How backups of an etcd that HyperShift runs are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    transform = rule(
        "has(self.aws) == (self.platform == 'AWS')",
        "aws is required with platform AWS and not allowed otherwise; add it, remove it or correct \
         platform"
    ),
    transform = rule(
        "has(self.azure) == (self.platform == 'Azure')",
        "azure is required with platform Azure and not allowed otherwise; add it, remove it or \
         correct platform"
    ),
)]
pub struct ManagedEtcdBackup {
    /// The cloud that backups are stored in.
    pub platform: EtcdBackupPlatform,
    /// The key on AWS, when `platform` is `AWS`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsEtcdBackupKey>,
    /// The key on Azure, when `platform` is `Azure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureEtcdBackupKey>,
}

/// A cloud that backups are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EtcdBackupPlatform {
    /// Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Microsoft Azure.
    Azure,
}

/// The key that encrypts backups on AWS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwsEtcdBackupKey {
    /// ARN of the key.
    #[serde(rename = "kmsKeyARN")]
    pub kms_key_arn: KmsKeyArn,
}

/// The key that encrypts backups on Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AzureEtcdBackupKey {
    /// URL of the key in its vault.
    #[serde(rename = "encryptionKeyURL")]
    pub encryption_key_url: AzureKeyUrl,
}

/// ARN of a key of the AWS Key Management Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule(
    "self.matches('^arn:aws(-cn|-us-gov)?:kms:[-0-9a-z]+:[0-9]{12}:key/[-0-9A-Za-z]+$')",
    "a key on AWS must be an ARN of the form arn:aws:kms:<region>:<account>:key/<id>"
))]
pub struct KmsKeyArn(#[schemars(length(min = 1, max = 256))] pub String);

/// URL of a key in a vault or a managed HSM of Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = rule(
    "self.matches('^https://[-0-9A-Za-z]+[.](vault|managedhsm)[.](azure[.]net|azure[.]cn|usgovcloudapi[.]net|microsoftazure[.]de|sovcloud-api[.]fr)/keys/[-0-9A-Za-z]+(/[0-9A-Za-z]+)?$')",
    "a key on Azure must be a URL of the form https://<vault>.vault.azure.net/keys/<key>/<version>"
))]
pub struct AzureKeyUrl(#[schemars(length(min = 1, max = 210))] pub String);
