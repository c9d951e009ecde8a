//! Credentials for registries, as a Secret of type `kubernetes.io/dockerconfigjson` holds them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::memory::unpoisoned;
use crate::reference::Reference;

/// The key of the Secret that holds them.
pub const KEY: &str = ".dockerconfigjson";

/// Credentials for registries. Cheap to clone.
#[derive(Clone, Default)]
pub struct PullSecret {
    entries: Arc<Entries>,
    /// A hash of all entries.
    fingerprint: [u8; 32],
}

/// By host, or by host and path prefix.
type Entries = BTreeMap<String, Credential>;

/// Pull secrets of reads that have not ended. Each reconcile parses its own, which may have a megabyte; reads with equal
/// ones share one.
#[derive(Default)]
pub(crate) struct InUse(Mutex<HashMap<[u8; 32], Weak<Entries>>>);

/// Credentials for a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub(crate) username: String,
    pub(crate) password: String,
    /// A refresh token, for registries that have one in place of a password.
    pub(crate) identity_token: Option<String>,
    /// A hash of it, made once: an image with many mirrors needs it for each.
    fingerprint: [u8; 32],
}

/// An invalid pull secret. The error never contains its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPullSecret {
    /// The format is invalid.
    #[error("the pull secret is not a JSON document with \"auths\" (line {line}, column {column})")]
    Document {
        /// The line of the error.
        line: usize,
        /// The column of the error.
        column: usize,
    },
    /// An entry is invalid.
    #[error("the pull secret's entry for {registry} {problem}")]
    Entry {
        /// The registry of the entry.
        registry: String,
        /// The problem.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
struct Document {
    auths: BTreeMap<String, Entry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

// === impl PullSecret ===

impl PullSecret {
    /// No credentials: only public images can be pulled.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Reads what is under [`KEY`].
    pub fn parse(json: &[u8]) -> Result<Self, InvalidPullSecret> {
        let document: Document =
            serde_json::from_slice(json).map_err(|error| InvalidPullSecret::Document {
                line: error.line(),
                column: error.column(),
            })?;
        let mut entries = BTreeMap::new();
        for (key, entry) in document.auths {
            let credential = entry
                .credential()
                .map_err(|problem| InvalidPullSecret::Entry {
                    registry: key.clone(),
                    problem,
                })?;
            entries.extend(credential.map(|credential| (normalized(&key), credential)));
        }
        let mut hash = Sha256::new();
        for (key, credential) in &entries {
            hash.update(key.len().to_le_bytes());
            hash.update(key);
            hash.update(credential.fingerprint);
        }
        Ok(Self {
            entries: Arc::new(entries),
            fingerprint: hash.finalize().into(),
        })
    }

    /// The credentials for an image: those of the longest entry that is a prefix of its name.
    pub fn credential(&self, image: &Reference) -> Option<&Credential> {
        let mut name = image.repository();
        loop {
            if let Some(credential) = self.entries.get(name.as_str()) {
                return Some(credential);
            }
            name.truncate(name.rfind('/')?);
        }
    }

    /// The hosts for which there are these credentials.
    pub(crate) fn hosts_of(&self, credential: Option<&Credential>) -> Vec<String> {
        let entries = self.entries.iter();
        let same = entries.filter(|(_, other)| Some(*other) == credential);
        let host = |key: &String| key.split(['/', ':']).next().unwrap_or_default().to_owned();
        same.map(|(key, _)| host(key)).collect()
    }

    /// A hash of the credentials for an image; it does not reveal them.
    pub(crate) fn fingerprint(&self, image: &Reference) -> [u8; 32] {
        let credential = self.credential(image);
        credential.map_or_else(
            || Sha256::digest([]).into(),
            |credential| credential.fingerprint,
        )
    }
}

// === impl InUse ===

impl InUse {
    /// The same pull secret, in the memory of one that is in use already.
    pub(crate) fn share(&self, secret: &PullSecret) -> PullSecret {
        let mut in_use = unpoisoned(&self.0);
        in_use.retain(|_, entries| entries.strong_count() > 0);
        let entries = in_use.get(&secret.fingerprint).and_then(Weak::upgrade);
        let entries = entries.unwrap_or_else(|| {
            in_use.insert(secret.fingerprint, Arc::downgrade(&secret.entries));
            secret.entries.clone()
        });
        PullSecret {
            entries,
            fingerprint: secret.fingerprint,
        }
    }
}

// === impl Credential ===

impl Credential {
    fn new(username: String, password: String, identity_token: Option<String>) -> Self {
        let token = identity_token.as_deref().unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [&username, &password, token] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Self {
            fingerprint: hash.finalize().into(),
            username,
            password,
            identity_token,
        }
    }
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

// === impl Entry ===

impl Entry {
    /// The credentials; nothing if the entry is empty, as some tools leave it behind.
    fn credential(self) -> Result<Option<Credential>, &'static str> {
        let identity_token = Some(self.identitytoken).filter(|token| !token.is_empty());
        let (username, password) = if self.auth.is_empty() {
            (self.username, self.password)
        } else {
            decoded(&self.auth)?
        };
        if username.is_empty() && identity_token.is_none() {
            return Ok(None);
        }
        Ok(Some(Credential::new(username, password, identity_token)))
    }
}

fn decoded(auth: &str) -> Result<(String, String), &'static str> {
    let bytes = STANDARD
        .decode(auth.trim())
        .map_err(|_| "has an \"auth\" that is not base64")?;
    let text = String::from_utf8(bytes).map_err(|_| "has an \"auth\" that is not text")?;
    let (username, password) = text
        .split_once(':')
        .ok_or("has an \"auth\" that is not user:password")?;
    // Some tools pad with zeros.
    let password = password.trim_end_matches('\0');
    Ok((username.to_owned(), password.to_owned()))
}

/// The key of an entry as a repository. Old tools write URLs.
fn normalized(key: &str) -> String {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let key = key.trim_end_matches('/');
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    match path {
        "" | "v1" | "v2" => host.to_ascii_lowercase(),
        path => format!("{}/{path}", host.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn secret(auths: &Value) -> PullSecret {
        let json = json!({ "auths": auths }).to_string();
        PullSecret::parse(json.as_bytes()).unwrap()
    }

    fn user(secret: &PullSecret, image: &str) -> Option<String> {
        let credential = secret.credential(&image.parse().unwrap())?;
        Some(credential.username.clone())
    }

    fn entry(user: &str) -> Value {
        json!({ "auth": STANDARD.encode(format!("{user}:secret")) })
    }

    #[test]
    fn the_most_specific_entry_applies() {
        let secret = secret(&json!({
            "registry.example.com": entry("host"),
            "registry.example.com/a/b": entry("path"),
            "https://old.example.com/v1/": entry("url"),
            "registry.example.com:5000": entry("port"),
            "UPPER.example.com": entry("upper"),
        }));
        for (image, expected) in [
            ("registry.example.com/a/b/c:1", Some("path")),
            ("registry.example.com/a/b:1", Some("path")),
            ("registry.example.com/a/bc:1", Some("host")),
            ("registry.example.com/a:1", Some("host")),
            ("old.example.com/a:1", Some("url")),
            ("registry.example.com:5000/a:1", Some("port")),
            ("upper.example.com/a:1", Some("upper")),
            ("example.com/a:1", None),
            ("evil-registry.example.com/a:1", None),
        ] {
            assert_eq!(user(&secret, image).as_deref(), expected, "{image}");
        }
    }

    #[test]
    fn both_forms_and_empty_entries_are_read() {
        let secret = secret(&json!({
            "a.example.com": { "auth": STANDARD.encode("user:pass:word\0\0") },
            "b.example.com": { "username": "user", "password": "p", "email": "x" },
            "c.example.com": {},
        }));
        let password = |image: &str| {
            let credential = secret.credential(&image.parse().unwrap());
            credential.map(|credential| credential.password.clone())
        };
        assert_eq!(password("a.example.com/x").as_deref(), Some("pass:word"));
        assert_eq!(password("b.example.com/x").as_deref(), Some("p"));
        assert_eq!(password("c.example.com/x"), None);
    }

    #[test]
    fn invalid_pull_secrets_are_reported_without_their_content() {
        for (json, expected) in [
            ("", "line 1"),
            ("{\"auths\": \"topsecret\"}", "\"auths\""),
            ("{\"a\": {\"auth\": \"topsecret\"}}", "\"auths\""),
            (
                r#"{"auths": {"a.example.com": {"auth": "topsecret!"}}}"#,
                "a.example.com",
            ),
            (
                r#"{"auths": {"a.example.com": {"auth": "dG9wc2VjcmV0"}}}"#,
                "user:password",
            ),
        ] {
            let error = PullSecret::parse(json.as_bytes()).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(expected), "{json}: {text}");
            assert!(!text.contains("topsecret"), "{text}");
        }
    }

    #[test]
    fn reads_with_equal_pull_secrets_share_one() {
        let in_use = InUse::default();
        let parsed = |user: &str| secret(&json!({ "registry.example.com": entry(user) }));
        let first = in_use.share(&parsed("a"));
        let again = in_use.share(&parsed("a"));
        let other = in_use.share(&parsed("b"));
        assert!(Arc::ptr_eq(&first.entries, &again.entries));
        assert_eq!(user(&other, "registry.example.com/x").as_deref(), Some("b"));
        drop((first, again));
        in_use.share(&other);
        assert_eq!(unpoisoned(&in_use.0).len(), 1, "it keeps none by itself");
    }

    #[test]
    fn debug_output_contains_no_credentials() {
        let secret = secret(&json!({ "registry.example.com": entry("someone") }));
        let image = "registry.example.com/a".parse().unwrap();
        let text = format!("{secret:?} {:?}", secret.credential(&image));
        assert!(
            text.contains("registry.example.com") && !text.contains("someone"),
            "{text}"
        );
        assert!(!text.contains("secret\""), "{text}");
    }

    proptest! {
        #[test]
        fn fingerprints_differ_when_credentials_do(a in "[a-z]{1,3}", b in "[a-z]{1,3}", c in "[a-z]{1,3}", d in "[a-z]{1,3}") {
            let image = "registry.example.com/a".parse().unwrap();
            let print = |user: &str, password: &str| {
                let entry = json!({ "username": user, "password": password });
                secret(&json!({ "registry.example.com": entry, "other.example.com": entry })).fingerprint(&image)
            };
            prop_assert_eq!(print(&a, &b) == print(&c, &d), (a, b) == (c, d));
        }
    }
}
