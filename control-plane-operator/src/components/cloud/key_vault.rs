//! Key vaults of Azure that only the cluster's network reaches: the API server connects through the router, whose pods are
//! in that network.

use api::hypershift::v1beta1::platform::azure::AzureCloud;
use api::hypershift::v1beta1::secret_encryption::azure::{
    AzureKeyVaultAccess, AzureKeyVaultType, AzureKmsSpec,
};
use control_plane_component::{Context, Error, Result};

use super::azure;

/// Host names of the vaults with the cluster's encryption keys, the active one first. Empty if they are public.
pub(crate) fn private_hosts(context: &Context<'_>) -> Result<Vec<String>> {
    let Some(kms) = private_vault(context) else {
        return Ok(Vec::new());
    };
    let suffix = suffix(context, kms.key_vault_type)?;
    let mut hosts = Vec::new();
    for key in std::iter::once(&kms.active_key).chain(&kms.backup_key) {
        let host = format!("{}.{suffix}", checked(&key.key_vault_name)?);
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

fn private_vault<'a>(context: &Context<'a>) -> Option<&'a AzureKmsSpec> {
    let encryption = context.spec().secret_encryption.as_ref()?;
    let kms = encryption.kms.as_ref()?.azure.as_ref()?;
    let is_private = kms.key_vault_access == Some(AzureKeyVaultAccess::Private);
    (is_private && azure::uses_managed_identities(context)).then_some(kms)
}

/// The domain of vaults in the cluster's cloud.
fn suffix(context: &Context<'_>, type_: Option<AzureKeyVaultType>) -> Result<&'static str> {
    let is_hsm = type_ == Some(AzureKeyVaultType::ManagedHsm);
    let cloud = azure::platform(context)?.cloud;
    match (cloud, is_hsm) {
        (AzureCloud::PublicCloud, false) => Ok("vault.azure.net"),
        (AzureCloud::PublicCloud, true) => Ok("managedhsm.azure.net"),
        (AzureCloud::UsGovernmentCloud, false) => Ok("vault.usgovcloudapi.net"),
        (AzureCloud::UsGovernmentCloud, true) => Ok("managedhsm.usgovcloudapi.net"),
        (AzureCloud::ChinaCloud, false) => Ok("vault.azure.cn"),
        (AzureCloud::ChinaCloud, true) => Ok("managedhsm.azure.cn"),
        (AzureCloud::GermanCloud | AzureCloud::BleuCloud | AzureCloud::StackCloud, _) => {
            Err(Error::Invalid {
                field: "spec.secretEncryption.kms.azure.keyVaultAccess".to_owned(),
                value: "Private".to_owned(),
                hint: "use Public: the names of private key vaults in this cloud are unknown"
                    .to_owned(),
            })
        }
    }
}

/// The name of a vault. It is part of a configuration file.
fn checked(name: &str) -> Result<&str> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_known) {
        return Ok(name);
    }
    Err(Error::Invalid {
        field: "keyVaultName of spec.secretEncryption.kms.azure".to_owned(),
        value: name.to_owned(),
        hint: "write letters, digits and hyphens".to_owned(),
    })
}
