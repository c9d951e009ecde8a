//! Copies of the pull secret.

use api::annotations::cluster::ENSURE_EXISTS_PULL_SECRET;
use serde_json::Value;

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, bare};

const NAME: &str = "pull-secret";
const NAMESPACES: [&str; 2] = ["openshift-config", "openshift"];

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    for namespace in NAMESPACES {
        if !is_kept(input, namespace) {
            desired.attempt(copy(input, namespace));
        }
    }
}

/// Whether users may keep a copy that they have changed.
fn is_kept(input: &Input<'_>, namespace: &str) -> bool {
    let live = input.live("v1", "Secret", namespace, NAME);
    let data = live.and_then(|live| live["data"].as_object());
    input.annotation(ENSURE_EXISTS_PULL_SECRET.key()).is_some()
        && data.is_some_and(|data| !data.is_empty())
}

fn copy(input: &Input<'_>, namespace: &str) -> Result<Object, Error> {
    let key = Key::new("v1", "Secret", namespace, NAME);
    let source = input.source(&key.to_string(), "Secret", NAME)?;
    let mut value = bare(&key);
    for field in ["type", "data"] {
        value[field] = source.get(field).cloned().unwrap_or(Value::Null);
    }
    Ok(Object::enforce(value))
}
