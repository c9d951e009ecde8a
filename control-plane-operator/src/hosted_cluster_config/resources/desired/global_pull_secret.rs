//! The pull secret on nodes: the control plane's, and what users of the hosted cluster add to it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use control_plane_component::hash::bytes_hash;
use serde_json::{Map, Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, manifest, secret, service_account};

const MANIFEST: &str = include_str!("assets/global-pull-secret-syncer.yaml");
const NAMESPACE: &str = "kube-system";
const NAME: &str = "global-pull-secret-syncer";
const ORIGINAL: &str = "original-pull-secret";
const GLOBAL: &str = "global-pull-secret";
/// The Secret of users.
const ADDITIONAL: &str = "additional-pull-secret";
const CONFIG: &str = ".dockerconfigjson";
const CONFIG_HASH: &str = "hypershift.openshift.io/globalps-config-hash";

/// The Secret of users, which this operator does not write.
pub(super) fn additional() -> Key {
    Key::new("v1", "Secret", NAMESPACE, ADDITIONAL)
}

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if !input.is_on(&["AWS", "Azure"]) {
        return;
    }
    desired.add(Object::create(service_account(NAMESPACE, NAME)));
    let object = format!("Secret {NAMESPACE}/{ORIGINAL}");
    let original = match input.secret_value(&object, "pull-secret", CONFIG) {
        Ok(original) => original,
        Err(error) => return desired.errors.push(error),
    };
    let users = input.guest.get(&additional()).map(|it| &it["data"]);
    let users = users.filter(|data| data.as_object().is_some_and(|data| !data.is_empty()));
    let merged = match users.map(|data| merge(&original, data)) {
        None => None,
        Some(Ok(merged)) => Some(merged),
        // The nodes keep what they have.
        Some(Err(error)) => return desired.errors.push(error),
    };
    let data = [(CONFIG, original.as_slice())];
    desired.add(Object::enforce(secret(NAMESPACE, ORIGINAL, &data)));
    desired.add(match &merged {
        None => Object::delete(&Key::new("v1", "Secret", NAMESPACE, GLOBAL)),
        Some(merged) => {
            let value = secret(NAMESPACE, GLOBAL, &[(CONFIG, merged.as_slice())]);
            let type_ = json!({ "type": "kubernetes.io/dockerconfigjson" });
            Object::enforce(value).initially(type_)
        }
    });
    let in_use = merged.as_ref().unwrap_or(&original);
    for document in manifest(MANIFEST) {
        desired.add(daemon_set(input, document, in_use, merged.is_some()));
    }
}

/// All credentials; those of the control plane win.
fn merge(original: &[u8], users: &Value) -> Result<Vec<u8>, Error> {
    let invalid = |problem: &str| {
        Error::invalid(
            format!("Secret {NAMESPACE}/{GLOBAL}"),
            format!("{problem} in Secret {NAMESPACE}/{ADDITIONAL}"),
        )
    };
    let config = users[CONFIG].as_str();
    let config = config.and_then(|text| STANDARD.decode(text).ok());
    let config = config.ok_or_else(|| invalid("key .dockerconfigjson is missing"))?;
    let mut auths = auths(&config).ok_or_else(|| invalid("key .dockerconfigjson is invalid"))?;
    if auths.is_empty() {
        return Err(invalid("auths is empty"));
    }
    auths.extend(self::auths(original).unwrap_or_default());
    Ok(json!({ "auths": auths }).to_string().into_bytes())
}

fn auths(config: &[u8]) -> Option<Map<String, Value>> {
    let config: Value = serde_json::from_slice(config).ok()?;
    config["auths"].as_object().cloned()
}

fn daemon_set(input: &Input<'_>, mut value: Value, in_use: &[u8], is_merged: bool) -> Object {
    let template = &mut value["spec"]["template"];
    // New credentials roll the pods. Older programs have the same hash.
    template["metadata"]["labels"][CONFIG_HASH] = json!(bytes_hash(in_use));
    let container = &mut template["spec"]["containers"][0];
    container["image"] = json!(input.settings.own_image);
    if is_merged && let Some(mounts) = container["volumeMounts"].as_array_mut() {
        mounts.push(
            json!({ "name": GLOBAL, "mountPath": "/etc/global-pull-secret", "readOnly": true }),
        );
    }
    Object::enforce(value)
}
