//! Encryption of Secrets by IBM Cloud, which clusters on other platforms may have, too. The Secret with the API key is
//! validated with all references.

use api::hypershift::v1beta1::secret_encryption::ibm_cloud::{
    IbmCloudKmsAuthType, IbmCloudKmsSpec,
};
use api::hypershift::v1beta1::secret_encryption::{KmsProvider, SecretEncryptionType};

use super::Problems;
use crate::facts::Facts;

/// What the settings of the key service lack.
pub(super) fn key_problems(facts: &Facts) -> Problems {
    let encryption = facts.cluster.spec.secret_encryption.as_ref();
    let encryption = encryption.filter(|it| it.type_ == SecretEncryptionType::Kms);
    let kms = encryption.and_then(|it| it.kms.as_ref());
    let Some(kms) = kms.filter(|it| it.provider == KmsProvider::IbmCloud) else {
        return Problems::new();
    };
    match &kms.ibmcloud {
        Some(ibm_cloud) => missing(ibm_cloud),
        None => vec![
            "spec.secretEncryption.kms.provider is IBMCloud, and spec.secretEncryption.kms.ibmcloud is not set: set it"
                .to_owned(),
        ],
    }
}

fn missing(ibm_cloud: &IbmCloudKmsSpec) -> Problems {
    let mut problems = Problems::new();
    let mut add = |field: &str, what: &str| {
        problems.push(format!(
            "spec.secretEncryption.kms.ibmcloud.{field} is empty: set it to {what}"
        ));
    };
    if ibm_cloud.region.is_empty() {
        add("region", "the region of the key service");
    }
    if ibm_cloud.key_list.is_empty() {
        add("keyList", "a list with at least one root key");
    }
    let unmanaged = ibm_cloud.auth.unmanaged.as_ref();
    let is_named = unmanaged.is_some_and(|it| !it.credentials.name.is_empty());
    if ibm_cloud.auth.type_ == IbmCloudKmsAuthType::Unmanaged && !is_named {
        add(
            "auth.unmanaged.credentials.name",
            "the name of a Secret with the key iam_apikey",
        );
    }
    problems
}
