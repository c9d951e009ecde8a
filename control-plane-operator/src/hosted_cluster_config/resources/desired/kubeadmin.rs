//! The hash of the password of `kubeadmin`.

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Key, Object, secret};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kubeadmin";
/// Secret with the password, in the control plane namespace.
const PASSWORD: &str = "kubeadmin-password";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    if !input.is_oauth_enabled() {
        return;
    }
    if input.sources.get("", "Secret", PASSWORD).is_none() {
        desired.add(Object::delete(&Key::new("v1", "Secret", NAMESPACE, NAME)));
        return;
    }
    let object = format!("Secret {NAMESPACE}/{NAME}");
    let hash = input.settings.kubeadmin_hash.as_deref();
    let hash = hash.ok_or_else(|| Error::missing(object, "the hash of the password"));
    desired.attempt(
        hash.map(|hash| Object::enforce(secret(NAMESPACE, NAME, &[(NAME, hash.as_bytes())]))),
    );
}
