//! The keys of login sessions: they sign and encrypt cookies. They are created once, because new ones end all sessions.

use api::annotations::cluster::DISABLE_PKI_RECONCILIATION;
use control_plane_component::Context;
use control_plane_component::render::{adopt, hashed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::components::kubeconfig::base64;
use crate::random;

/// Name of the Secret.
const SECRET: &str = "oauth-openshift-session";
/// Key in the Secret.
const KEY: &str = "v4-0-config-system-session";
/// Lengths of the keys: HMAC-SHA-512, and AES-256.
const AUTHENTICATION: usize = 64;
const ENCRYPTION: usize = 32;
/// Characters that need no quotes.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The format of the OAuth server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionSecrets {
    api_version: String,
    kind: String,
    secrets: Vec<SessionSecret>,
}

#[derive(Serialize, Deserialize)]
struct SessionSecret {
    authentication: String,
    encryption: String,
}

/// Whether the Secret must be created.
pub(crate) fn needs_session_secret(context: &Context<'_>) -> bool {
    let existing = context.objects.secret_value(SECRET, KEY);
    context.is_oauth_enabled()
        && !DISABLE_PKI_RECONCILIATION.is_set(context.annotations())
        && !existing.is_some_and(|keys| is_valid(&keys))
}

fn is_valid(keys: &[u8]) -> bool {
    let keys = std::str::from_utf8(keys).ok();
    let keys = keys.and_then(|keys| serde_saphyr::from_str::<SessionSecrets>(keys).ok());
    let first = keys.and_then(|keys| keys.secrets.into_iter().next());
    first.is_some_and(|keys| !keys.authentication.is_empty() && !keys.encryption.is_empty())
}

/// Creates the Secret with new keys. `None` if no random bytes are available.
pub(crate) fn new_session_secret(context: &Context<'_>) -> Option<Value> {
    let keys = keys(&mut random::fill)?;
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET },
        "type": "Opaque",
        "data": { KEY: base64(json!(keys).to_string().as_bytes()) },
    });
    adopt(&mut secret, context);
    Some(hashed(secret))
}

fn keys(random: &mut impl FnMut(&mut [u8]) -> bool) -> Option<SessionSecrets> {
    let secret = SessionSecret {
        authentication: random::text(ALPHABET, AUTHENTICATION, random)?,
        encryption: random::text(ALPHABET, ENCRYPTION, random)?,
    };
    Some(SessionSecrets {
        api_version: "osin.config.openshift.io/v1".to_owned(),
        kind: "SessionSecrets".to_owned(),
        secrets: vec![secret],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_are_valid_and_have_their_lengths() {
        let keys = keys(&mut random::fill).unwrap();
        assert!(is_valid(json!(keys).to_string().as_bytes()));
        let key = &keys.secrets[0];
        assert_eq!((key.authentication.len(), key.encryption.len()), (64, 32));
    }

    #[test]
    fn incomplete_keys_are_replaced() {
        let key = |authentication: &str, encryption: &str| {
            format!(
                "apiVersion: osin.config.openshift.io/v1\nkind: SessionSecrets\nsecrets:\n\
                 - authentication: '{authentication}'\n  encryption: '{encryption}'\n"
            )
        };
        for (text, expected) in [
            (key("a", "b"), true),
            (key("", "b"), false),
            (key("a", ""), false),
            (String::new(), false),
            ("{}".to_owned(), false),
        ] {
            assert_eq!(is_valid(text.as_bytes()), expected, "{text}");
        }
    }
}
