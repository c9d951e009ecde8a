//! The bcrypt hash of the password of `kubeadmin`: created once, kept while it matches the password, and written back to
//! the Secret of the control plane namespace, so that the OAuth server restarts with it.

use std::sync::{Arc, Mutex, PoisonError};

use bcrypt::Version;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::error::chain;

use super::super::error::Error;
use super::desired::{Guest, Key};
use crate::kubeadmin::{HASH, KEY, SECRET};

/// Cost of the hash: 2^10 rounds, as in OpenShift.
const COST: u32 = 10;
/// Start of a hash of this cost. A hash of the hosted cluster is verified only if it has one of these, because the time
/// that verifying takes doubles with each step of the cost, and users can write the Secret.
const PREFIXES: [&str; 3] = ["$2a$10$", "$2b$10$", "$2y$10$"];

/// The hash of the password that was seen last.
#[derive(Debug, Default)]
pub(super) struct PasswordHash(Mutex<Option<Known>>);

#[derive(Clone)]
struct Known {
    /// SHA-256 of the password.
    digest: [u8; 32],
    hash: Arc<str>,
}

// === impl PasswordHash ===

impl PasswordHash {
    /// The hash of the password in `secret`, or none without a password. Hashing takes a twentieth of a second, so it is done
    /// once for each password, and on a thread of its own.
    pub(super) async fn of(
        &self,
        secret: Option<&Value>,
        guest: &Guest,
    ) -> Result<Option<String>, Error> {
        let Some(password) = secret.and_then(password) else {
            return Ok(None);
        };
        let digest = Sha256::digest(&password).into();
        if let Some(known) = self.known(digest) {
            return Ok(Some(known.to_string()));
        }
        let live = live(guest);
        let salt = salt()?;
        let hashing = tokio::task::spawn_blocking(move || hash(&password, live, salt)).await;
        let failed = |problem: String| Error::Form {
            object: format!("Secret {SECRET}"),
            problem,
        };
        let hash = hashing.map_err(|error| failed(chain(&error)))?;
        let hash = hash.map_err(|error| failed(error.to_string()))?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known {
            digest,
            hash: hash.as_str().into(),
        });
        Ok(Some(hash))
    }

    fn known(&self, digest: [u8; 32]) -> Option<Arc<str>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|known| known.digest == digest)?;
        Some(Arc::clone(&known.hash))
    }
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// Whether the hash still has to be written back: it is in the hosted cluster, and `secret` has another one.
pub(super) fn is_due(secret: &Value, hash: &str, guest: &Guest) -> bool {
    live(guest).as_deref() == Some(hash) && secret["metadata"]["annotations"][HASH] != hash
}

/// Writes the hash back. The write is refused if the Secret is another one by now.
pub(super) async fn write_back(
    client: &kube::Client,
    namespace: &str,
    secret: &Value,
    hash: &str,
) -> Result<(), Error> {
    let metadata = &secret["metadata"];
    let patch = json!({ "metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "annotations": { HASH: hash },
    } });
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let parameters = PatchParams::default();
    api.patch(SECRET, &parameters, &Patch::Merge(&patch))
        .await
        .map(drop)
        .map_err(Error::client(format!("patch Secret {namespace}/{SECRET}")))
}

fn password(secret: &Value) -> Option<Vec<u8>> {
    let secret: Secret = serde_json::from_value(secret.clone()).ok()?;
    let password = secret.data?.remove(KEY)?.0;
    (!password.is_empty()).then_some(password)
}

/// The hash in the hosted cluster.
fn live(guest: &Guest) -> Option<String> {
    let secret = guest.get(&Key::new("v1", "Secret", "kube-system", "kubeadmin"))?;
    let secret: Secret = serde_json::from_value(secret.clone()).ok()?;
    String::from_utf8(secret.data?.remove("kubeadmin")?.0).ok()
}

/// The hash: the live one if it matches.
fn hash(
    password: &[u8],
    live: Option<String>,
    salt: [u8; 16],
) -> Result<String, bcrypt::BcryptError> {
    if let Some(live) = live.filter(|live| matches(password, live)) {
        return Ok(live);
    }
    let hash = bcrypt::hash_with_salt(password, COST, salt)?;
    Ok(hash.format_for_version(Version::TwoA))
}

fn matches(password: &[u8], hash: &str) -> bool {
    PREFIXES.iter().any(|prefix| hash.starts_with(prefix))
        && bcrypt::verify(password, hash).unwrap_or(false)
}

fn salt() -> Result<[u8; 16], Error> {
    let mut salt = [0; 16];
    if crate::random::fill(&mut salt) {
        return Ok(salt);
    }
    Err(Error::waiting("random bytes"))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    fn secret(annotations: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": SECRET, "namespace": "clusters-one", "uid": "u", "resourceVersion": "7",
                "annotations": annotations,
            },
            "data": { KEY: STANDARD.encode("abcde-fghij-kmnpq-rstuv") },
        })
    }

    fn guest(hash: &str) -> Guest {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "kubeadmin", "namespace": "kube-system" },
            "data": { "kubeadmin": STANDARD.encode(hash) },
        });
        [secret].into_iter().collect()
    }

    async fn of(password: &PasswordHash, guest: &Guest) -> String {
        let secret = secret(&json!({}));
        password.of(Some(&secret), guest).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_matching_hash_is_kept_and_any_other_replaced() {
        let own = of(&PasswordHash::default(), &Guest::default()).await;
        assert!(own.starts_with("$2a$10$"), "{own}");
        assert!(bcrypt::verify("abcde-fghij-kmnpq-rstuv", &own).unwrap());
        let other = bcrypt::hash_with_salt("other", COST, [1; 16]).unwrap();
        for (live, is_kept) in [
            (own.clone(), true),
            (own.replace("$2a$", "$2y$"), true),
            (other.to_string(), false),
            (String::new(), false),
            ("$2a$10$".to_owned(), false),
        ] {
            let found = of(&PasswordHash::default(), &guest(&live)).await;
            assert_eq!(found == live, is_kept, "{live}");
            assert!(bcrypt::verify("abcde-fghij-kmnpq-rstuv", &found).unwrap());
        }
    }

    /// Users of the hosted cluster can write the Secret: verifying a hash of the highest cost would take days.
    #[tokio::test]
    async fn a_hash_of_another_cost_is_not_verified() {
        let own = of(&PasswordHash::default(), &Guest::default()).await;
        for cost in ["$2a$31$", "$2a$04$", "$2b$30$"] {
            let live = own.replace("$2a$10$", cost);
            assert!(!matches(b"abcde-fghij-kmnpq-rstuv", &live), "{cost}");
        }
    }

    #[tokio::test]
    async fn the_hash_is_computed_once_for_each_password() {
        let password = PasswordHash::default();
        let first = of(&password, &Guest::default()).await;
        // Another hash would have another salt.
        assert_eq!(of(&password, &Guest::default()).await, first);
        assert_eq!(of(&password, &guest("tampered")).await, first);
        let mut changed = secret(&json!({}));
        changed["data"][KEY] = json!(STANDARD.encode("new"));
        let second = password.of(Some(&changed), &guest(&first)).await.unwrap();
        assert!(bcrypt::verify("new", &second.unwrap()).unwrap());
    }

    #[tokio::test]
    async fn without_a_password_there_is_no_hash() {
        let mut empty = secret(&json!({}));
        empty["data"][KEY] = json!("");
        for secret in [None, Some(&empty), Some(&json!({}))] {
            let found = PasswordHash::default().of(secret, &Guest::default()).await;
            assert_eq!(found.unwrap(), None, "{secret:?}");
        }
    }

    /// The OAuth server reads the hash when it starts, so it must not restart before the hash is there.
    #[test]
    fn the_hash_is_written_back_after_it_is_in_the_hosted_cluster() {
        let annotated = |hash: &str| secret(&json!({ HASH: hash }));
        for (secret, guest, expected) in [
            (secret(&Value::Null), guest("new"), true),
            (annotated("old"), guest("new"), true),
            (annotated("new"), guest("new"), false),
            (annotated("old"), guest("old"), false),
            (annotated("old"), Guest::default(), false),
        ] {
            assert_eq!(is_due(&secret, "new", &guest), expected, "{secret:?}");
        }
    }

    #[tokio::test]
    async fn only_the_secret_that_was_read_is_annotated() {
        let path = "/api/v1/namespaces/clusters-one/secrets/kubeadmin-password";
        let read = secret(&json!({}));
        let scenario = Scenario::new([Expect::patch(path)
            .body(json!({ "metadata": {
                "uid": "u", "resourceVersion": "7", "annotations": { HASH: "h" },
            } }))
            .answer(Answer::ok(&read))]);
        write_back(&scenario.client(), "clusters-one", &read, "h")
            .await
            .unwrap();
        scenario.finish();
    }
}
