//! How objects are encrypted in etcd, with keys that the user gave.

use api::hypershift::v1beta1::secret_encryption::SecretEncryptionType;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::kubeconfig::{base64, put, secret_value, yaml};
use crate::component::{Context, Error, Result};

/// The file that the API server reads.
pub(super) const FILE: &str = "/etc/kubernetes/secret-encryption/config.yaml";
/// What is encrypted.
const RESOURCES: [&str; 5] = [
    "secrets",
    "configmaps",
    "routes.route.openshift.io",
    "oauthaccesstokens.oauth.openshift.io",
    "oauthauthorizetokens.oauth.openshift.io",
];

/// Whether objects are encrypted with a key that is in a Secret.
pub(super) fn is_by_key(context: &Context<'_>) -> bool {
    let encryption = context.spec().secret_encryption.as_ref();
    encryption.is_some_and(|encryption| encryption.type_ == SecretEncryptionType::Aescbc)
}

/// What the API server cannot do yet.
pub(super) fn check(context: &Context<'_>) -> Result<()> {
    let encryption = context.spec().secret_encryption.as_ref();
    match encryption.map(|encryption| encryption.type_) {
        Some(SecretEncryptionType::Kms) => Err(Error::Invalid {
            field: "spec.secretEncryption.type".to_owned(),
            value: "kms".to_owned(),
            way_out: "this version encrypts with aescbc only".to_owned(),
        }),
        Some(SecretEncryptionType::Aescbc) | None => Ok(()),
    }
}

pub(super) fn adapt(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let encryption = context.spec().secret_encryption.as_ref();
    let Some(keys) = encryption.and_then(|encryption| encryption.aescbc.as_ref()) else {
        return Err(Error::missing("field spec.secretEncryption", "aescbc"));
    };
    // The first one writes, the others still read.
    let names = std::iter::once(&keys.active_key).chain(&keys.backup_key);
    let keys: Vec<_> = names
        .map(|reference| {
            let key = secret_value(context, &reference.name, "key")?;
            // A new key needs a new name, and a name is stored with each object.
            let digest = format!("{:x}", Sha256::digest(&key));
            Ok(json!({ "name": digest[..16], "secret": base64(&key) }))
        })
        .collect::<Result<_>>()?;
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": RESOURCES,
            "providers": [{ "aescbc": { "keys": keys } }, { "identity": {} }],
        }],
    });
    put(secret, "config.yaml", yaml(&config));
    Ok(())
}
