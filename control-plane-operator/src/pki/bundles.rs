//! `ConfigMaps` with the certificates of authorities that somebody trusts.

use std::collections::BTreeMap;

use control_plane_component::{Context, Objects};
use serde_json::{Value, json};

use super::plan::BUNDLE;

/// Name, and the Secrets of the authorities.
const BUNDLES: [(&str, &[&str]); 7] = [
    ("root-ca", &["root-ca"]),
    ("etcd-ca", &["etcd-signer"]),
    ("etcd-metrics-ca", &["etcd-metrics-signer"]),
    ("aggregator-client-ca", &["kas-aggregator-client-signer"]),
    ("konnectivity-ca-bundle", &["konnectivity-signer"]),
    (
        "client-ca",
        &[
            "kube-control-plane-signer",
            "kube-apiserver-to-kubelet-signer",
            "system-admin-signer",
            "hcco-signer",
            "kas-bootstrap-container-signer",
            "cluster-signer-ca",
        ],
    ),
    (
        "kubelet-client-ca",
        &["kube-apiserver-to-kubelet-signer", "cluster-signer-ca"],
    ),
];
/// Key of our own authorities.
const KEY: &str = "ca.crt";
/// Key of authorities that users bring.
const USER_KEY: &str = "ca-bundle.crt";
/// Authorities that the break-glass signers add.
const TOTAL_CLIENT: &str = "total-client-ca";
/// Authorities that the user trusts, and where they are handed on.
const USER: (&str, &str) = ("user-ca-bundle", "trusted-ca-bundle-managed");

/// All bundles.
pub(super) fn all(context: &Context<'_>, there: &Objects) -> Vec<Value> {
    let managed = |name: &str| context.is_etcd_managed() || !name.starts_with("etcd-");
    let mut bundles: Vec<_> = BUNDLES
        .iter()
        .filter(|(name, _)| managed(name))
        .map(|(name, authorities)| {
            let mut all: Vec<_> = authorities
                .iter()
                .map(|secret| trusted(secret, there))
                .collect();
            if *name == "client-ca" {
                all.extend(there.config_value(TOTAL_CLIENT, USER_KEY));
            }
            config_map(name, KEY, &join(&all))
        })
        .collect();
    bundles.push(config_map(
        "oauth-master-ca-bundle",
        KEY,
        &oauth(context, there),
    ));
    let (user, managed) = USER;
    bundles.push(config_map(
        managed,
        USER_KEY,
        &there.config_value(user, USER_KEY).unwrap_or_default(),
    ));
    bundles
}

/// Whom the OAuth server's clients trust.
fn oauth(context: &Context<'_>, there: &Objects) -> String {
    let configuration = context.spec().configuration.as_ref();
    let certs = configuration
        .and_then(|configuration| configuration.api_server.as_ref())
        .and_then(|api_server| api_server.serving_certs.as_ref());
    let named = certs
        .into_iter()
        .flat_map(|certs| &certs.named_certificates);
    let named = named.filter_map(|named| {
        let secret = named.serving_certificate.as_ref()?;
        String::from_utf8(there.secret_value(&secret.name, "tls.crt")?).ok()
    });
    let mut all = vec![trusted("root-ca", there)];
    all.extend(named);
    all.extend(there.config_value(USER.0, USER_KEY));
    join(&all)
}

/// All certificates of an authority that are trusted.
pub(crate) fn trusted(secret: &str, there: &Objects) -> String {
    let value = |key: &str| there.secret_value(secret, key);
    let pem = value(BUNDLE)
        .or_else(|| value("ca.crt"))
        .or_else(|| value("tls.crt"));
    String::from_utf8(pem.unwrap_or_default()).unwrap_or_default()
}

fn join(parts: &[String]) -> String {
    let parts: Vec<_> = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        parts.join("\n") + "\n"
    }
}

fn config_map(name: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": BTreeMap::from([(key, text)]),
    })
}
