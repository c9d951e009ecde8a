//! CA bundle `ConfigMaps`.

use std::collections::{BTreeMap, BTreeSet};

use control_plane_component::certificate::Authority;
use control_plane_component::{Context, Objects};
use serde_json::{Value, json};

use super::plan::BUNDLE;

/// Bundle of the authorities of client certificates.
const CLIENT: &str = "client-ca";

/// Key of bundles with generated authorities.
const KEY: &str = "ca.crt";
/// Key of bundles with users' authorities.
const USER_KEY: &str = "ca-bundle.crt";
/// The last line of a certificate.
const END: &str = "-----END CERTIFICATE-----\n";
/// ConfigMap with authorities of the break-glass signers.
const TOTAL_CLIENT: &str = "total-client-ca";
/// ConfigMap with the user's CA bundle.
const USER: &str = "user-ca-bundle";
/// ConfigMap with all authorities that nodes trust in addition to those of their system.
const TRUSTED: &str = "trusted-ca-bundle-managed";

/// Returns all bundles.
pub(super) fn all(
    authorities: &[Authority],
    context: &Context<'_>,
    existing: &Objects,
) -> Vec<Value> {
    let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for authority in authorities {
        for bundle in authority.bundles {
            let members = members.entry(bundle).or_default();
            members.push(trusted(authority.secret, existing));
        }
    }
    let total = existing.config_value(TOTAL_CLIENT, USER_KEY);
    members.entry(CLIENT).or_default().extend(total);
    let mut bundles: Vec<_> = members
        .into_iter()
        .map(|(name, members)| {
            let live = existing.config_value(name, KEY);
            config_map(name, KEY, &keep_live_order(join(&members), live))
        })
        .collect();
    bundles.push(config_map(
        "oauth-master-ca-bundle",
        KEY,
        &oauth(context, existing),
    ));
    bundles.push(config_map(
        TRUSTED,
        USER_KEY,
        &users(proxy_authorities(context), existing),
    ));
    bundles
}

/// The name of the ConfigMap with the authorities of the cluster's proxy.
fn proxy_authorities<'a>(context: &Context<'a>) -> Option<&'a str> {
    let proxy = context.spec().configuration.as_ref()?.proxy.as_ref()?;
    let name = proxy.trusted_ca.as_ref()?.name.as_str();
    (!name.is_empty()).then_some(name)
}

/// The user's CA bundle, followed by those authorities of the proxy that it does not have.
fn users(proxy: Option<&str>, existing: &Objects) -> String {
    let bundle = |name| existing.config_value(name, USER_KEY).unwrap_or_default();
    let user = bundle(USER);
    let proxy = proxy.map(bundle).unwrap_or_default();
    let known: BTreeSet<_> = certificates(&user).collect();
    let new = certificates(&proxy).filter(|certificate| !known.contains(certificate));
    let new: Vec<_> = new.map(str::to_owned).collect();
    if new.is_empty() {
        return user;
    }
    let mut parts = vec![user];
    parts.extend(new);
    join(&parts)
}

/// The certificates of a bundle, with the text that precedes each.
fn certificates(bundle: &str) -> impl Iterator<Item = &str> {
    let parts = bundle.split_inclusive(END).map(str::trim);
    parts.filter(|part| !part.is_empty())
}

/// Keeps the live bundle if it has the same certificates, because a changed order would roll out pods.
fn keep_live_order(bundle: String, live: Option<String>) -> String {
    live.filter(|live| sorted(live) == sorted(&bundle))
        .unwrap_or(bundle)
}

fn sorted(bundle: &str) -> Vec<&str> {
    let mut all: Vec<_> = certificates(bundle).collect();
    all.sort_unstable();
    all
}

/// The bundle for clients of the OAuth server.
fn oauth(context: &Context<'_>, existing: &Objects) -> String {
    let configuration = context.spec().configuration.as_ref();
    let certs = configuration
        .and_then(|configuration| configuration.api_server.as_ref())
        .and_then(|api_server| api_server.serving_certs.as_ref());
    let named = certs
        .into_iter()
        .flat_map(|certs| &certs.named_certificates);
    let named = named.filter_map(|named| {
        let secret = named.serving_certificate.as_ref()?;
        String::from_utf8(existing.secret_value(&secret.name, "tls.crt")?).ok()
    });
    let mut all = vec![trusted("root-ca", existing)];
    all.extend(named);
    all.extend(existing.config_value(USER, USER_KEY));
    join(&all)
}

/// Returns the trusted certificates of an authority, PEM.
pub(crate) fn trusted(secret: &str, existing: &Objects) -> String {
    let value = |key: &str| existing.secret_value(secret, key);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_trust_the_authorities_of_the_user_and_of_the_proxy() {
        let pem = |name: &str| format!("-----BEGIN CERTIFICATE-----\n{name}\n{END}");
        for (user, proxy, expected) in [
            ("", "", String::new()),
            ("a", "", pem("a")),
            ("", "b", pem("b")),
            ("a", "b", pem("a") + &pem("b")),
            ("a", "a", pem("a")),
        ] {
            let bundle = |name: &str, member: &str| {
                let text = if member.is_empty() {
                    String::new()
                } else {
                    pem(member)
                };
                config_map(name, USER_KEY, &text)
            };
            let existing = [bundle(USER, user), bundle("proxy-ca", proxy)];
            let existing: Objects = existing.into_iter().collect();
            let found = users(Some("proxy-ca"), &existing);
            assert_eq!(found, expected, "{user:?} and {proxy:?}");
            let alone = users(None, &existing);
            assert_eq!(alone.is_empty(), user.is_empty(), "{user:?}");
        }
    }

    #[test]
    fn bundles_with_the_same_certificates_keep_their_order() {
        let bundle = |names: &[&str]| -> String {
            let pem = |name: &&str| format!("-----BEGIN CERTIFICATE-----\n{name}\n{END}");
            names.iter().map(pem).collect()
        };
        for (live, expected) in [
            (Some(bundle(&["b", "a"])), bundle(&["b", "a"])),
            (Some(bundle(&["b", "c"])), bundle(&["a", "b"])),
            (Some(bundle(&["b", "a", "a"])), bundle(&["a", "b"])),
            (None, bundle(&["a", "b"])),
        ] {
            assert_eq!(keep_live_order(bundle(&["a", "b"]), live), expected);
        }
    }
}
