//! Keys, as the status describes them: their names in the configuration, and their fingerprints.
//!
//! Names are stored with each encrypted object: they are derived from the key, and must never change.

use api::hypershift::v1beta1::secret_encryption::azure::{AzureKeyVaultType, AzureKmsKey};
use api::hypershift::v1beta1::secret_encryption::status::{
    AescbcKeySecretReference, AescbcKeyStatus, EncryptionKeyReference, SecretEncryptionKeyStatus,
    SecretEncryptionProvider,
};
use api::hypershift::v1beta1::secret_encryption::{
    AwsKmsKeyEntry, KmsProvider, KmsSpec, SecretEncryptionSpec, SecretEncryptionType,
};
use control_plane_component::hash::hash;
use k8s_openapi::api::core::v1::LocalObjectReference;
use serde_json::json;

use super::sha256;

/// Key of the Secrets with keys for AES-CBC.
pub(crate) const SECRET_KEY: &str = "key";

/// Something that the spec must have, or that it references.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("waiting for {object} with {what}")]
pub(crate) struct Missing {
    pub(crate) object: String,
    pub(crate) what: String,
}

/// The keys of a spec.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Requested {
    /// The key to encrypt with.
    pub(crate) active: SecretEncryptionKeyStatus,
    /// The previous key, if users rotate as in earlier releases.
    pub(crate) backup: Option<SecretEncryptionKeyStatus>,
}

/// Returns the keys of a spec. `secret` returns the key in a Secret.
pub(crate) fn requested(
    spec: &SecretEncryptionSpec,
    secret: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Requested, Missing> {
    match spec.type_ {
        SecretEncryptionType::Kms => {
            let kms = spec.kms.as_ref();
            of_kms(kms.ok_or_else(|| missing("field spec.secretEncryption", "kms"))?)
        }
        SecretEncryptionType::Aescbc => {
            let keys = spec.aescbc.as_ref();
            let keys = keys.ok_or_else(|| missing("field spec.secretEncryption", "aescbc"))?;
            let backup = keys.backup_key.as_ref().filter(|it| !it.name.is_empty());
            Ok(Requested {
                active: of_secret(&keys.active_key, &secret)?,
                backup: backup.map(|it| of_secret(it, &secret)).transpose()?,
            })
        }
    }
}

fn of_secret(
    reference: &LocalObjectReference,
    secret: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<SecretEncryptionKeyStatus, Missing> {
    let name = &reference.name;
    let bytes = secret(name).filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| missing(format!("Secret {name}"), "key key"))?;
    Ok(SecretEncryptionKeyStatus {
        aescbc: Some(AescbcKeyStatus {
            secret: AescbcKeySecretReference { name: name.clone() },
            data_hash: sha256(&bytes),
        }),
        ..empty(SecretEncryptionProvider::Aescbc)
    })
}

fn of_kms(kms: &KmsSpec) -> Result<Requested, Missing> {
    let missing = |field| missing("field spec.secretEncryption.kms", field);
    match kms.provider {
        KmsProvider::Aws => {
            let aws = kms.aws.as_ref().ok_or_else(|| missing("aws"))?;
            let backup = aws.backup_key.as_ref().filter(|key| !key.arn.is_empty());
            Ok(Requested {
                active: of_aws(&aws.active_key),
                backup: backup.map(of_aws),
            })
        }
        KmsProvider::Azure => {
            let azure = kms.azure.as_ref().ok_or_else(|| missing("azure"))?;
            Ok(Requested {
                active: of_azure(&azure.active_key),
                backup: azure.backup_key.as_ref().map(of_azure),
            })
        }
        KmsProvider::IbmCloud => {
            let ibm_cloud = kms.ibmcloud.as_ref().ok_or_else(|| missing("ibmcloud"))?;
            let keys = ibm_cloud.key_list.iter();
            // The list has no order: the plugin encrypts with the highest version.
            let newest = keys.max_by_key(|key| key.key_version);
            let active = SecretEncryptionKeyStatus {
                ibm_cloud: Some(newest.ok_or_else(|| missing("ibmcloud.keyList"))?.clone()),
                ..empty(SecretEncryptionProvider::IbmCloud)
            };
            Ok(Requested {
                active,
                backup: None,
            })
        }
    }
}

fn of_aws(key: &AwsKmsKeyEntry) -> SecretEncryptionKeyStatus {
    SecretEncryptionKeyStatus {
        aws: Some(key.clone()),
        ..empty(SecretEncryptionProvider::Aws)
    }
}

fn of_azure(key: &AzureKmsKey) -> SecretEncryptionKeyStatus {
    SecretEncryptionKeyStatus {
        azure: Some(key.clone()),
        ..empty(SecretEncryptionProvider::Azure)
    }
}

fn empty(provider: SecretEncryptionProvider) -> SecretEncryptionKeyStatus {
    SecretEncryptionKeyStatus {
        provider,
        azure: None,
        aws: None,
        ibm_cloud: None,
        aescbc: None,
    }
}

fn missing(object: impl Into<String>, what: impl Into<String>) -> Missing {
    Missing {
        object: object.into(),
        what: what.into(),
    }
}

/// The type of the vaults of a spec, which cannot change.
pub(crate) fn vault_type(spec: &SecretEncryptionSpec) -> Option<AzureKeyVaultType> {
    let azure = spec.kms.as_ref().and_then(|kms| kms.azure.as_ref());
    azure.and_then(|azure| azure.key_vault_type)
}

/// Identifies a key in the history.
pub(crate) fn reference(
    key: &SecretEncryptionKeyStatus,
    vault: Option<AzureKeyVaultType>,
) -> EncryptionKeyReference {
    EncryptionKeyReference {
        provider: key.provider,
        fingerprint: fingerprint(key, vault),
    }
}

/// Hash of what identifies a key: equal for equal keys.
pub(crate) fn fingerprint(
    key: &SecretEncryptionKeyStatus,
    vault: Option<AzureKeyVaultType>,
) -> String {
    let SecretEncryptionKeyStatus {
        provider: _,
        azure,
        aws,
        ibm_cloud,
        aescbc,
    } = key;
    let azure = azure.as_ref().map(|it| {
        let key = format!("{}/{}/{}", it.key_vault_name, it.key_name, it.key_version);
        key + is_hsm(vault).map_or("", |_| "/ManagedHSM")
    });
    let aws = aws.as_ref().map(|it| it.arn.clone());
    let ibm_cloud = ibm_cloud
        .as_ref()
        .map(|it| format!("{}/{}/{}", it.crk_id, it.instance_id, it.key_version));
    let aescbc = aescbc
        .as_ref()
        .map(|it| format!("{}/{}", it.secret.name, it.data_hash));
    let text = azure.or(aws).or(ibm_cloud).or(aescbc).unwrap_or_default();
    sha256(text.as_bytes())
}

fn is_hsm(vault: Option<AzureKeyVaultType>) -> Option<AzureKeyVaultType> {
    vault.filter(|vault| *vault == AzureKeyVaultType::ManagedHsm)
}

/// Name of the provider of an AWS key.
pub(crate) fn aws_name(key: &AwsKmsKeyEntry) -> String {
    format!("awskmskey-{}", fnv1(key.arn.as_bytes()))
}

/// Name of the provider of an Azure key: the 32-bit FNV-1a hash of the key as JSON, whose fields have this order.
pub(crate) fn azure_name(key: &AzureKmsKey, vault: Option<AzureKeyVaultType>) -> String {
    let mut fields = vec![
        ("keyVaultName", key.key_vault_name.as_str()),
        ("keyName", key.key_name.as_str()),
        ("keyVersion", key.key_version.as_str()),
    ];
    fields.extend(is_hsm(vault).map(|_| ("keyVaultType", "ManagedHSM")));
    let fields = fields.iter();
    let fields: Vec<_> = fields
        .map(|(name, value)| format!("{}:{}", json!(name), json!(value)))
        .collect();
    let text = format!("{{{}}}", fields.join(","));
    format!("azure-{}", hash(text.as_bytes()))
}

/// Name of the provider of all IBM Cloud keys.
pub(crate) const IBM_CLOUD_NAME: &str = "ibmv2";

/// Name of a key for AES-CBC.
pub(crate) fn aescbc_name(key: &[u8]) -> String {
    format!("key-{}", fnv1(key))
}

/// The 32-bit FNV-1 hash.
fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

#[cfg(test)]
mod tests;
