//! CA bundles that users have given, and the CA bundle of the OAuth server.

use serde_json::json;

use super::error::Error;
use super::global_config::proxy;
use super::input::Input;
use super::object::{Desired, Key, Object, bare, config_map};

const USER_CA: &str = "user-ca-bundle";
const OPENSHIFT_CONFIG: &str = "openshift-config";
const CONTROLLER_MANAGER: &str = "openshift-controller-manager";

pub(super) fn build(input: &Input<'_>, desired: &mut Desired) {
    let has_bundle = input.spec("/additionalTrustBundle").is_some();
    let user = Some(USER_CA).filter(|_| has_bundle);
    copy(input, desired, (OPENSHIFT_CONFIG, USER_CA), user);
    let proxy = Some(proxy::name(input)).filter(|name| !name.is_empty());
    copy(
        input,
        desired,
        (CONTROLLER_MANAGER, "openshift-user-ca"),
        proxy,
    );
    if input.is_oauth_enabled() {
        desired.attempt(oauth(input));
    }
    let mut services = bare(&Key::new(
        "v1",
        "ConfigMap",
        CONTROLLER_MANAGER,
        "openshift-service-ca",
    ));
    services["metadata"]["annotations"] =
        json!({ "service.beta.openshift.io/inject-cabundle": "true" });
    desired.add(Object::merge(services));
}

/// Copies a ConfigMap, or deletes the copy if there is no source.
fn copy(
    input: &Input<'_>,
    desired: &mut Desired,
    (namespace, name): (&str, &str),
    source: Option<&str>,
) {
    let key = Key::new("v1", "ConfigMap", namespace, name);
    let Some(source) = source else {
        desired.add(Object::delete(&key));
        return;
    };
    let source = input.source(&key.to_string(), "ConfigMap", source);
    desired.attempt(
        source.map(|source| Object::enforce(config_map(namespace, name, source["data"].clone()))),
    );
}

fn oauth(input: &Input<'_>) -> Result<Object, Error> {
    let (namespace, name) = ("openshift-config-managed", "oauth-serving-cert");
    let object = format!("ConfigMap {namespace}/{name}");
    let ca = input.config_value(&object, "oauth-master-ca-bundle", "ca.crt")?;
    let bundle = config_map(namespace, name, json!({ "ca-bundle.crt": ca }));
    Ok(Object::enforce(bundle).owned_by_component("apiserver-auth"))
}
