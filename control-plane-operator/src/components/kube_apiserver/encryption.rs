//! Encryption of objects in etcd: with the user's keys, or by a key management service.

use api::hypershift::v1beta1::secret_encryption::SecretEncryptionType;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use super::kms;
use super::kubeconfig::{base64, put, secret_value, yaml};

/// The file that the API server reads.
pub(super) const FILE: &str = "/etc/kubernetes/secret-encryption/config.yaml";
/// Encrypted resources.
const RESOURCES: [&str; 5] = [
    "secrets",
    "configmaps",
    "routes.route.openshift.io",
    "oauthaccesstokens.oauth.openshift.io",
    "oauthauthorizetokens.oauth.openshift.io",
];

/// Whether encryption is configured.
pub(super) fn is_on(context: &Context<'_>) -> bool {
    context.spec().secret_encryption.is_some()
}

pub(super) fn adapt(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{ "resources": RESOURCES, "providers": providers(context)? }],
    });
    put(secret, "config.yaml", yaml(&config));
    Ok(())
}

/// The first provider encrypts, all of them decrypt. `identity` reads objects from before encryption was enabled.
fn providers(context: &Context<'_>) -> Result<Vec<Value>> {
    let encryption = context.spec().secret_encryption.as_ref();
    let mut providers = match encryption.map(|encryption| encryption.type_) {
        None => Vec::new(),
        Some(SecretEncryptionType::Aescbc) => vec![by_keys(context)?],
        Some(SecretEncryptionType::Kms) => kms::plugin(context)?
            .map(|plugin| plugin.providers)
            .unwrap_or_default(),
    };
    providers.push(json!({ "identity": {} }));
    Ok(providers)
}

/// Encryption with keys in Secrets.
fn by_keys(context: &Context<'_>) -> Result<Value> {
    let encryption = context.spec().secret_encryption.as_ref();
    let Some(keys) = encryption.and_then(|encryption| encryption.aescbc.as_ref()) else {
        return Err(Error::missing("field spec.secretEncryption", "aescbc"));
    };
    let names = std::iter::once(&keys.active_key).chain(&keys.backup_key);
    let keys: Vec<_> = names
        .filter(|reference| !reference.name.is_empty())
        .map(|reference| {
            let key = secret_value(context, &reference.name, "key")?;
            let name = format!("key-{}", fnv1(&key));
            Ok(json!({ "name": name, "secret": base64(&key) }))
        })
        .collect::<Result<_>>()?;
    Ok(json!({ "aescbc": { "keys": keys } }))
}

/// The 32-bit FNV-1 hash. Key names are stored with each encrypted object, so they must be computed as in earlier
/// versions.
pub(super) fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_matches_fnv1_vectors() {
        for (text, hash) in [
            ("", 0x811c_9dc5),
            ("a", 0x050c_5d7e),
            ("foobar", 0x31f0_b262),
        ] {
            assert_eq!(fnv1(text.as_bytes()), hash, "{text}");
        }
    }
}
