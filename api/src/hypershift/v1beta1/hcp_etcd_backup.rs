//! A backup of a hosted control plane's etcd. The kind is part of the technology preview.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::hypershift::v1beta1::etcd::backup::{
    AwsEtcdBackupKey, AzureEtcdBackupKey, AzureKeyUrl, KmsKeyArn,
};
use crate::schema::{self, immutable, list_map, rule, with};

/// Where the backup is stored.
#[derive(CustomResource, Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "HCPEtcdBackup",
    root = "HcpEtcdBackup",
    doc = "A backup of a hosted control plane's etcd.",
    namespaced,
    status = "HcpEtcdBackupStatus",
    derive = "PartialEq",
    shortname = "hcpetcdbk",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(
        name = "Completed",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="BackupCompleted")].status"#
    ),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.snapshotURL"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[schemars(transform = immutable("a backup is made once: create another HCPEtcdBackup"))]
pub struct HcpEtcdBackupSpec {
    /// The object storage that the backup is written to.
    pub storage: HcpEtcdBackupStorage,
}

/// Object storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.s3) == (self.storageType == 'S3')",
        "s3 is required with storageType S3 and not allowed otherwise; add it, remove it or correct storageType"
    ),
    transform = rule(
        "has(self.azureBlob) == (self.storageType == 'AzureBlob')",
        "azureBlob is required with storageType AzureBlob and not allowed otherwise; add it, remove it or correct storageType"
    ),
)]
pub struct HcpEtcdBackupStorage {
    /// The kind of storage.
    pub storage_type: HcpEtcdBackupStorageType,
    /// A bucket on AWS, when `storageType` is `S3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<HcpEtcdBackupS3>,
    /// A container on Azure, when `storageType` is `AzureBlob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure_blob: Option<HcpEtcdBackupAzureBlob>,
}

/// A kind of object storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum HcpEtcdBackupStorageType {
    /// Amazon S3.
    S3,
    /// Azure Blob Storage.
    AzureBlob,
}

/// A bucket on AWS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.kmsKeyARN) || !has(oldSelf.kmsKeyARN)",
    "kmsKeyARN cannot be removed: create another HCPEtcdBackup"
))]
pub struct HcpEtcdBackupS3 {
    /// The name of the bucket.
    #[schemars(
        length(min = 3, max = 63),
        transform = rule(
            "self.matches('^[0-9a-z][-.0-9a-z]*[0-9a-z]$')",
            "bucket must be lower-case letters, digits, hyphens and periods that begin and end with a letter or digit"
        ),
        transform = rule(
            "!self.contains('..')",
            "bucket cannot have two periods in a row: correct the name"
        ),
    )]
    pub bucket: String,
    /// The AWS region of the bucket, such as `eu-central-1`.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[a-z][-0-9a-z]*[0-9a-z]$')",
            "region must be a region of AWS, such as eu-central-1"
        ),
        transform = rule(
            "!self.contains('--')",
            "region cannot have two hyphens in a row: correct the region"
        ),
    )]
    pub region: String,
    /// What the key of the backup's object begins with.
    #[schemars(
        length(min = 1, max = 1024),
        transform = rule(
            r#"self.matches("^[-0-9A-Za-z!_.*'()/]+$")"#,
            "keyPrefix must be letters, digits, slashes and the characters -!_.*'() only"
        ),
    )]
    pub key_prefix: String,
    /// The credentials for the bucket.
    pub credentials: HcpEtcdBackupCredentials,
    /// ARN of the key that encrypts the backup. Unset: the default of the bucket.
    #[serde(rename = "kmsKeyARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = immutable("kmsKeyARN cannot change: create another HCPEtcdBackup"))]
    pub kms_key_arn: Option<KmsKeyArn>,
}

/// A container on Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.encryptionKeyURL) || !has(oldSelf.encryptionKeyURL)",
    "encryptionKeyURL cannot be removed: create another HCPEtcdBackup"
))]
pub struct HcpEtcdBackupAzureBlob {
    /// The storage account.
    #[schemars(
        length(min = 3, max = 24),
        transform = rule(
            "!self.matches('[^0-9a-z]')",
            "storageAccount must be lower-case letters and digits only"
        ),
    )]
    pub storage_account: String,
    /// The container within the account.
    #[schemars(
        length(min = 3, max = 63),
        transform = rule(
            "self.matches('^[0-9a-z]([-0-9a-z]*[0-9a-z])?$')",
            "container must be lower-case letters, digits and hyphens that begin and end with a letter or digit"
        ),
        transform = rule(
            "!self.contains('--')",
            "container cannot have two hyphens in a row: correct the name"
        ),
    )]
    pub container: String,
    /// What the name of the backup's blob begins with.
    #[schemars(
        length(min = 1, max = 1024),
        transform = rule(
            "!self.matches('[^-0-9A-Za-z/_.]')",
            "keyPrefix must be letters, digits, slashes and the characters -_. only"
        ),
    )]
    pub key_prefix: String,
    /// The credentials for the container.
    pub credentials: HcpEtcdBackupCredentials,
    /// URL of the key that encrypts the backup. Unset: the default of the storage account.
    #[serde(
        rename = "encryptionKeyURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(transform = immutable("encryptionKeyURL cannot change: create another HCPEtcdBackup"))]
    pub encryption_key_url: Option<AzureKeyUrl>,
}

/// Credentials for object storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HcpEtcdBackupCredentials {
    /// A Secret in the namespace of the operator, with the file of credentials under the key `credentials`.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^[0-9a-z]([-0-9a-z]*[0-9a-z])?([.][0-9a-z]([-0-9a-z]*[0-9a-z])?)*$')",
            "credentials.name must be the name of a Secret: lower-case letters, digits, hyphens and periods"
        ),
    )]
    pub name: String,
}

/// What became of the backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = with("minProperties", 1))]
pub struct HcpEtcdBackupStatus {
    /// Whether the backup is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        with = "Vec<schema::Condition>",
        length(min = 1, max = 10),
        transform = list_map(["type"]),
    )]
    pub conditions: Vec<Condition>,
    /// URL of the backup. A new cluster can be restored from it.
    #[serde(
        rename = "snapshotURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 2048), transform = snapshot_url)]
    pub snapshot_url: Option<String>,
    /// The key that encrypts the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_metadata: Option<HcpEtcdBackupEncryption>,
}

/// The key that encrypts a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = with("minProperties", 1), transform = with("maxProperties", 1))]
pub struct HcpEtcdBackupEncryption {
    /// A key on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aws: Option<AwsEtcdBackupKey>,
    /// A key on Azure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure: Option<AzureEtcdBackupKey>,
}

impl Kind for HcpEtcdBackup {
    const DESCRIPTION: &'static str = "A backup of a hosted control plane's etcd, which is made once. It is in the namespace of the control plane.";
    const REQUIRED: &'static [&'static str] = &["spec"];
}

/// The URL of a backup.
pub(crate) fn snapshot_url(schema: &mut Schema) {
    rule(
        "self.startsWith('https://') || self.startsWith('s3://')",
        "the URL of a backup must begin with https:// or s3://",
    )(schema);
}
