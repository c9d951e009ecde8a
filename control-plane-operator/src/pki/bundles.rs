//! `ConfigMaps` with the certificates of authorities that are trusted.

use std::collections::BTreeMap;

use control_plane_component::certificate::Authority;
use control_plane_component::{Context, Objects};
use serde_json::{Value, json};

use super::plan::BUNDLE;

/// The bundle of those whose users the API server knows.
const CLIENT: &str = "client-ca";

/// Key of our own authorities.
const KEY: &str = "ca.crt";
/// Key of authorities that users bring.
const USER_KEY: &str = "ca-bundle.crt";
/// The last line of a certificate.
const END: &str = "-----END CERTIFICATE-----\n";
/// Authorities that the break-glass signers add.
const TOTAL_CLIENT: &str = "total-client-ca";
/// Authorities that the user trusts, and where they are handed on.
const USER: (&str, &str) = ("user-ca-bundle", "trusted-ca-bundle-managed");

/// All bundles.
pub(super) fn all(authorities: &[Authority], context: &Context<'_>, there: &Objects) -> Vec<Value> {
    let mut members: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for authority in authorities {
        for bundle in authority.bundles {
            let members = members.entry(bundle).or_default();
            members.push(trusted(authority.secret, there));
        }
    }
    let total = there.config_value(TOTAL_CLIENT, USER_KEY);
    members.entry(CLIENT).or_default().extend(total);
    let mut bundles: Vec<_> = members
        .into_iter()
        .map(|(name, members)| {
            let live = there.config_value(name, KEY);
            config_map(name, KEY, &in_live_order(join(&members), live))
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

/// A bundle as it is, if it has the same certificates: their order means nothing, and a change would be noticed by pods.
fn in_live_order(bundle: String, live: Option<String>) -> String {
    let certificates = |text: &str| {
        let mut all: Vec<_> = text.split_inclusive(END).map(str::trim).collect();
        all.sort_unstable();
        all.join("\n")
    };
    live.filter(|live| certificates(live) == certificates(&bundle))
        .unwrap_or(bundle)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_of_the_same_certificates_keeps_its_order() {
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
            assert_eq!(in_live_order(bundle(&["a", "b"]), live), expected);
        }
    }
}
