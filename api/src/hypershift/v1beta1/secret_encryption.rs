//! How a control plane encrypts Secrets in etcd.

pub mod azure;
pub mod ibm_cloud;
pub mod status;

use k8s_openapi::api::core::v1::LocalObjectReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::secret_encryption::azure::AzureKmsSpec;
use crate::hypershift::v1beta1::secret_encryption::ibm_cloud::IbmCloudKmsSpec;
use crate::schema::{self, rule};

/// How Secrets and other sensitive objects are encrypted in etcd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretEncryptionSpec {
    /// The way they are encrypted: `kms` keeps the key in a cloud's key management service,
    /// `aescbc` in a Secret.
    #[serde(rename = "type")]
    pub type_: SecretEncryptionType,
    /// The key management service, when `type` is `kms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kms: Option<KmsSpec>,
    /// The Secret with the key, when `type` is `aescbc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aescbc: Option<AescbcSpec>,
}

/// Encryption by a key in a Secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AescbcSpec {
    /// Secret in the HostedCluster's namespace that holds the key to encrypt with: 32 random bytes
    /// under `key`.
    /// To rotate the key, name another Secret here; everything is then encrypted again.
    #[schemars(with = "schema::LocalObjectReference")]
    pub active_key: LocalObjectReference,
    /// Deprecated: keys are rotated without it. It named the Secret with the previous key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub backup_key: Option<LocalObjectReference>,
}

/// Encryption by a cloud's key management service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KmsSpec {
    /// The cloud that provides the service.
    pub provider: KmsProvider,
    /// Settings for AWS, when `provider` is `AWS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsKmsSpec>,
    /// Settings for Azure, when `provider` is `Azure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureKmsSpec>,
    /// Settings for IBM Cloud, when `provider` is `IBMCloud`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ibmcloud: Option<IbmCloudKmsSpec>,
}

/// Encryption by the key management service of AWS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsKmsSpec {
    /// AWS region of the key.
    #[schemars(length(max = 255))]
    pub region: String,
    /// The key to encrypt with.
    /// To rotate, name another key here; everything is then encrypted again.
    pub active_key: AwsKmsKeyEntry,
    /// Deprecated: keys are rotated without it. It named the previous key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup_key: Option<AwsKmsKeyEntry>,
    /// How the control plane authenticates to the service.
    pub auth: AwsKmsAuthSpec,
}

/// How a control plane authenticates to the key management service of AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsKmsAuthSpec {
    /// ARN of an IAM role that may `kms:Encrypt`, `kms:Decrypt`, `kms:ReEncrypt*`,
    /// `kms:GenerateDataKey*` and `kms:DescribeKey` with the keys.
    /// It must trust the cluster's OIDC issuer.
    #[schemars(length(max = 2048))]
    pub aws_kms: String,
}

/// A key of the key management service of AWS.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwsKmsKeyEntry {
    /// ARN of the key.
    #[schemars(
        length(min = 1, max = 2048),
        transform = rule(
            "self.matches('^arn:')",
            "arn must be the ARN of a key, which begins with arn:"
        ),
    )]
    pub arn: String,
}

/// A way to encrypt Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SecretEncryptionType {
    /// By a cloud's key management service.
    #[serde(rename = "kms")]
    Kms,
    /// By a key in a Secret.
    #[serde(rename = "aescbc")]
    Aescbc,
}

/// A cloud with a key management service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum KmsProvider {
    /// IBM Cloud.
    #[serde(rename = "IBMCloud")]
    IbmCloud,
    /// Amazon Web Services.
    #[serde(rename = "AWS")]
    Aws,
    /// Microsoft Azure.
    Azure,
}
