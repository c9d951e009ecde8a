//! The CA bundle of an OIDC issuer, and the secrets of its clients.

use serde_json::{Value, json};

use super::error::Error;
use super::input::Input;
use super::object::{Desired, Object, config_map, secret};

const NAMESPACE: &str = "openshift-config";
const CA: &str = "ca-bundle.crt";
const CLIENT_SECRET: &str = "clientSecret";
/// Annotation of Secrets that users of the hosted cluster provide.
const PROVIDED_BY_USERS: &str = "hypershift.openshift.io/hosted-cluster-sourced";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    // Only the first provider is used.
    let provider = input.spec("/configuration/authentication/oidcProviders/0");
    let Some(provider) = provider.filter(|_| !input.is_oauth_enabled()) else {
        return;
    };
    let ca = &provider["issuer"]["certificateAuthority"]["name"];
    if let Some(name) = ca.as_str().filter(|name| !name.is_empty()) {
        desired.attempt(ca_bundle(input, name));
    }
    let clients = provider["oidcClients"].as_array();
    let clients = clients.into_iter().flatten();
    for name in clients.filter_map(|client| client["clientSecret"]["name"].as_str()) {
        if !name.is_empty() && !is_provided_by_users(input, name) {
            desired.attempt(client(input, name));
        }
    }
}

fn ca_bundle(input: &Input<'_>, name: &str) -> Result<Object, Error> {
    let object = format!("ConfigMap {NAMESPACE}/{name}");
    let bundle = input.config_value(&object, name, CA)?;
    Ok(Object::merge(config_map(
        NAMESPACE,
        name,
        json!({ CA: bundle }),
    )))
}

fn client(input: &Input<'_>, name: &str) -> Result<Object, Error> {
    let object = format!("Secret {NAMESPACE}/{name}");
    let value = input.secret_value(&object, name, CLIENT_SECRET)?;
    let data = [(CLIENT_SECRET, value.as_slice())];
    Ok(Object::merge(secret(NAMESPACE, name, &data)))
}

fn is_provided_by_users(input: &Input<'_>, name: &str) -> bool {
    let source = input.sources.get("", "Secret", name);
    let annotations = source.map_or(&Value::Null, |it| &it["metadata"]["annotations"]);
    input.is_managed_azure() && annotations.get(PROVIDED_BY_USERS) == Some(&json!("true"))
}
