//! What is secret in a Secret, as strings that may be found nowhere else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Shorter ones are found by chance.
const SHORTEST: usize = 12;
/// As much of an encoded value as identifies it.
const ENOUGH: usize = 80;
/// Keys in Secrets with values that are not secret.
const PUBLIC: [&str; 12] = [
    // Which release and which configuration a token is for, and what became of it.
    "release",
    "hc-version",
    "pull-secret-hash",
    "additional-trust-bundle-hash",
    "global-config-hash",
    "message",
    "reason",
    "token-expiration-timestamp",
    // Which role is assumed with a token that is in a file.
    "credentials",
    // Names.
    "namespace",
    "username",
    "region",
];
/// Fields of a kubeconfig, or of credentials for registries, that are secret.
const FIELDS: [&str; 6] = [
    "token",
    "client-key-data",
    "password",
    "auth",
    "identitytoken",
    "secret",
];

/// So much of a needle is searched for first.
const START: usize = 8;
/// And so much of it whether to look at all.
const LEAST: usize = 3;

/// Strings, and where each is from.
#[derive(Debug, Default)]
pub(crate) struct Needles {
    /// By their first bytes: there are thousands of needles.
    by_start: HashMap<[u8; START], BTreeMap<String, String>>,
    /// Which of all first bytes there are: logs are long, and few places are looked at closer.
    begins: Vec<bool>,
}

// === impl Needles ===

impl Needles {
    /// Adds those of a Secret.
    pub(crate) fn add(&mut self, secret: &Value, of: &str) -> Result<()> {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        for (key, value) in secret["data"].as_object().into_iter().flatten() {
            let value = STANDARD.decode(value.as_str().unwrap_or_default())?;
            if PUBLIC.contains(&key.as_str()) || value.is_empty() {
                continue;
            }
            let origin = format!("{of}: {key} of Secret {name}");
            for needle in of_value(&value) {
                if needle.len() >= SHORTEST {
                    self.insert(needle, origin.clone());
                }
            }
        }
        Ok(())
    }

    fn insert(&mut self, needle: String, origin: String) {
        if let Some(start) = needle.as_bytes().first_chunk() {
            self.begins.resize(1 << (8 * LEAST), false);
            self.begins[number(start)] = true;
            let same = self.by_start.entry(*start).or_default();
            same.insert(needle, origin);
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_start.values().map(BTreeMap::len).sum()
    }

    /// Where the secrets come from that are in a text. Never the secrets.
    pub(crate) fn found_in(&self, text: &[u8]) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for (at, first) in text.windows(LEAST).enumerate() {
            if self.begins.get(number(first)) != Some(&true) {
                continue;
            }
            let rest = &text[at..];
            let same = rest.first_chunk().and_then(|it| self.by_start.get(it));
            for (needle, origin) in same.into_iter().flatten() {
                if rest.starts_with(needle.as_bytes()) {
                    found.insert(origin.as_str());
                }
            }
        }
        found
    }
}

/// The first bytes of something as a number.
fn number(bytes: &[u8]) -> usize {
    bytes[..LEAST]
        .iter()
        .fold(0, |number, &byte| number << 8 | usize::from(byte))
}

/// What may not be found anywhere, if this is a secret's value.
fn of_value(value: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(value) else {
        return vec![encoded(value)];
    };
    if text.contains("-----BEGIN") && !text.contains("apiVersion") && !text.contains("ignition") {
        return private_keys(text);
    }
    let mut needles = Vec::new();
    if let Ok(parsed) = serde_saphyr::from_str::<Value>(text)
        && (parsed.is_object() || parsed.is_array())
    {
        fields(&parsed, &mut needles);
    } else {
        needles.push(text.trim().to_owned());
    }
    needles.push(encoded(value));
    needles
}

fn encoded(value: &[u8]) -> String {
    let mut text = STANDARD.encode(value);
    text.truncate(ENOUGH);
    text
}

/// The lines of private keys. The first of them also says of which kind the key is, and is as good as the others.
fn private_keys(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----") {
            inside = line.starts_with("-----BEGIN") && line.contains("PRIVATE KEY");
        } else if inside {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The fields of a document that are secret, as they are and decoded.
fn fields(document: &Value, needles: &mut Vec<String>) {
    match document {
        Value::Object(all) => {
            for (name, value) in all {
                match value {
                    Value::String(text) if FIELDS.contains(&name.as_str()) => {
                        needles.push(text.clone());
                        let decoded = STANDARD.decode(text).unwrap_or_default();
                        needles.extend(private_keys(&String::from_utf8_lossy(&decoded)));
                    }
                    other => fields(other, needles),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|one| fields(one, needles)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nsecretsecretsecret\n-----END PRIVATE KEY-----\n";
    const PUBLIC_HALF: &str =
        "-----BEGIN CERTIFICATE-----\nnotsecretnotsecret\n-----END CERTIFICATE-----\n";

    fn needles(key: &str, value: &str) -> Needles {
        let secret =
            json!({ "metadata": { "name": "s" }, "data": { key: STANDARD.encode(value) } });
        let mut needles = Needles::default();
        needles.add(&secret, "one").unwrap();
        needles
    }

    #[test]
    fn secrets_are_found_and_public_values_are_not() {
        let kubeconfig = format!(
            "apiVersion: v1\nclusters:\n- cluster:\n    server: https://api.example.com:6443\nusers:\n- user:\n    client-key-data: {}\n",
            STANDARD.encode(KEY)
        );
        for (name, key, value, text, found) in [
            (
                "a token",
                "token",
                "0123456789abcdef",
                "Bearer 0123456789abcdef",
                true,
            ),
            ("a key", "tls.key", KEY, "x secretsecretsecret y", true),
            ("a certificate", "tls.crt", PUBLIC_HALF, PUBLIC_HALF, false),
            (
                "an encoded token",
                "token",
                "0123456789abcdef",
                &STANDARD.encode("0123456789abcdef"),
                true,
            ),
            (
                "the key in a kubeconfig",
                "kubeconfig",
                &kubeconfig,
                KEY,
                true,
            ),
            (
                "the server in a kubeconfig",
                "kubeconfig",
                &kubeconfig,
                "https://api.example.com:6443",
                false,
            ),
            (
                "credentials of a registry",
                ".dockerconfigjson",
                r#"{"auths":{"r.example.com":{"auth":"bm9ib2R5Om5vdGhpbmc="}}}"#,
                "Basic bm9ib2R5Om5vdGhpbmc=",
                true,
            ),
            (
                "a release",
                "release",
                "r.example.com/release:1",
                "r.example.com/release:1",
                false,
            ),
            ("something short", "token", "short", "short", false),
        ] {
            let origins = needles(key, value);
            assert_eq!(
                !origins.found_in(text.as_bytes()).is_empty(),
                found,
                "{name}"
            );
        }
    }
}
