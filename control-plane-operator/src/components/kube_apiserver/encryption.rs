//! Encryption of objects in etcd: with the user's keys, or by a key management service.
//!
//! A key that is replaced is read until all objects are encrypted with the new one: [`keys`] has the order.

mod keys;

use api::hypershift::v1beta1::secret_encryption::status::{
    SecretEncryptionKeyStatus, SecretEncryptionProvider,
};
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Secret};
use serde_json::{Value, json};

use super::kms;
use super::kubeconfig::{base64, put, yaml};
use crate::encryption::config::Config;
use crate::encryption::key::aescbc_name;
use crate::encryption::{FILE as KEY, HASH, SECRET, hash};

pub(super) use keys::keys;

/// The file that the API server reads.
pub(super) const FILE: &str = "/etc/kubernetes/secret-encryption/config.yaml";
/// A changed configuration rolls out new pods instead, so that it is known which one each pod has read.
pub(super) const RELOAD: &str = "--encryption-provider-config-automatic-reload=false";
/// Resources that are encrypted with keys in Secrets.
const RESOURCES: [&str; 1] = ["secrets"];
/// Resources that are encrypted by a key management service.
const KMS_RESOURCES: [&str; 5] = [
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

/// The configuration that exists. Without one, or if it is invalid, no key is in use.
pub(super) fn live(context: &Context<'_>) -> Config {
    let found = context.objects.secret_value(SECRET, KEY);
    let parsed = found.map(|text| Config::parse(&text));
    parsed.and_then(Result::ok).unwrap_or_default()
}

pub(super) fn adapt(context: &Context<'_>, secret: &mut Secret) -> Result<()> {
    let keys = keys(context)?;
    let live = live(context);
    let providers = providers(context, &keys, &live)?;
    let resources = resources(&keys);
    let mut entries = vec![json!({ "resources": resources, "providers": providers })];
    entries.extend(readable(&live, resources, &providers));
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": entries,
    });
    put(secret, KEY, yaml(&config));
    Ok(())
}

/// Annotates pods with the hash of the configuration that they read.
pub(super) fn annotate(context: &Context<'_>, template: &mut PodTemplateSpec) {
    let Some(read) = read_by_pods(context).filter(|_| is_on(context)) else {
        return;
    };
    let metadata = template.metadata.get_or_insert_default();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(HASH.to_owned(), hash(&read));
}

/// The configuration that exists. The first one is created before the Deployment: without its hash, the first pods would be
/// replaced as soon as it is there.
fn read_by_pods(context: &Context<'_>) -> Option<Vec<u8>> {
    let first = || {
        let mut secret = Secret::default();
        // An error is reported where the Secret is rendered.
        adapt(context, &mut secret).ok()?;
        secret.data?.remove(KEY).map(|value| value.0)
    };
    context.objects.secret_value(SECRET, KEY).or_else(first)
}

fn resources(keys: &[SecretEncryptionKeyStatus]) -> &'static [&'static str] {
    let mut keys = keys.iter();
    if keys.all(|key| key.provider == SecretEncryptionProvider::Aescbc) {
        return &RESOURCES;
    }
    &KMS_RESOURCES
}

/// The entry for resources that are no longer encrypted: those that are stay readable.
fn readable(live: &Config, resources: &[&str], providers: &[Value]) -> Option<Value> {
    let mut others = live.resources.clone();
    others.retain(|resource| !resources.contains(&resource.as_str()));
    let (identity, mut readers): (Vec<_>, Vec<_>) = providers
        .iter()
        .cloned()
        .partition(|provider| provider["identity"].is_object());
    readers.splice(0..0, identity);
    (!others.is_empty()).then(|| json!({ "resources": others, "providers": readers }))
}

/// The first provider encrypts, all of them decrypt. `identity` reads objects from before encryption was enabled.
fn providers(
    context: &Context<'_>,
    keys: &[SecretEncryptionKeyStatus],
    live: &Config,
) -> Result<Vec<Value>> {
    let plugin = kms::plugin(context)?.unwrap_or_default();
    let mut services = plugin.providers.into_iter();
    let mut providers = Vec::new();
    for key in keys {
        match &key.aescbc {
            Some(key) => {
                let secret = keys::secret(context, live, key)?;
                let entry = json!({ "name": aescbc_name(&secret), "secret": base64(&secret) });
                add_key(&mut providers, entry);
            }
            None => providers.extend(services.next()),
        }
    }
    providers.push(json!({ "identity": {} }));
    Ok(providers)
}

/// Adds a key to the provider of the key before it.
fn add_key(providers: &mut Vec<Value>, key: Value) {
    let last = providers.last_mut();
    let keys = last.and_then(|last| last["aescbc"]["keys"].as_array_mut());
    match keys {
        Some(keys) => keys.push(key),
        None => providers.push(json!({ "aescbc": { "keys": [key] } })),
    }
}
