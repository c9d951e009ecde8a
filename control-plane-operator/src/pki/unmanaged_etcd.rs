//! Unmanaged etcd: the client certificate of the control plane, and the authority of the servers.

use control_plane_component::Context;
use serde_json::{Value, json};

use crate::components::kubeconfig::base64;

/// The client certificate Secret of etcd, and its keys.
const CLIENT: (&str, [&str; 2]) = ("etcd-client-tls", ["etcd-client.crt", "etcd-client.key"]);
/// The `ConfigMap` with the CA of etcd's servers.
const AUTHORITY: &str = "etcd-ca";
/// Key of the CA in the user's Secret.
const AUTHORITY_KEY: &str = "etcd-client-ca.crt";

/// Returns both objects, once the user's Secret has all keys.
pub(super) fn objects(context: &Context<'_>) -> Vec<Value> {
    let Some(unmanaged) = &context.spec().etcd.unmanaged else {
        return Vec::new();
    };
    if context.is_etcd_managed() {
        return Vec::new();
    }
    let of = |key: &str| {
        let secret = &unmanaged.tls.client_secret.name;
        context.objects.secret_value(secret, key)
    };
    let (name, [certificate, key]) = CLIENT;
    let (Some(pem), Some(private), Some(authority)) = (of(certificate), of(key), of(AUTHORITY_KEY))
    else {
        return Vec::new();
    };
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name },
        "type": "Opaque",
        "data": { certificate: base64(&pem), key: base64(&private) },
    });
    let bundle = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": AUTHORITY },
        "data": { "ca.crt": String::from_utf8_lossy(&authority) },
    });
    vec![secret, bundle]
}
