//! Webhooks that give pods an identity in the cloud. They run next to the API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::azure;
use super::input::Input;
use super::object::{Desired, Key, Object, bare, manifest};

const AWS_RBAC: &str = include_str!("assets/rbac-aws.yaml");

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    match input.platform() {
        "AWS" => {
            desired.extend(manifest(AWS_RBAC).into_iter().map(Object::enforce));
            let webhook = json!({
                "name": "pod-identity-webhook.amazonaws.com",
                "admissionReviewVersions": ["v1beta1"],
                "clientConfig": client(input, "https://127.0.0.1:4443/mutate"),
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "rules": pods(),
            });
            desired.add(configuration("aws-pod-identity", &webhook));
        }
        "Azure" => azure::build(input, desired),
        _ => {}
    }
}

pub(super) fn client(input: &Input<'_>, url: &str) -> Value {
    json!({ "url": url, "caBundle": STANDARD.encode(&input.settings.initial_ca) })
}

/// Rules for the creation of pods.
pub(super) fn pods() -> Value {
    json!([{ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"] }])
}

pub(super) fn configuration(name: &str, webhook: &Value) -> Object {
    let api = "admissionregistration.k8s.io/v1";
    let mut value = bare(&Key::new(api, "MutatingWebhookConfiguration", "", name));
    value["webhooks"] = json!([webhook]);
    Object::enforce(value)
}
