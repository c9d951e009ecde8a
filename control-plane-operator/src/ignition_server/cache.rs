//! A cache of payloads by token.
//!
//! Only hashes of tokens are stored, so that neither timing nor a memory dump reveals a token.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long a payload is kept after it was rendered.
pub(super) const LIFETIME: Duration = Duration::from_hours(11);

type Key = [u8; 32];

/// The payload of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name of the token's Secret.
    pub(super) secret: String,
    /// The pool, as `<namespace>/<name>`.
    pub(super) pool: String,
    /// The Ignition config.
    pub(super) payload: Bytes,
}

/// All payloads.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<HashMap<Key, (Entry, Instant)>>,
}

// === impl Cache ===

impl Cache {
    /// Stores a payload for these tokens, and removes other tokens of its Secret.
    pub(super) fn put(&self, tokens: &[&str], entry: &Entry) {
        let until = Instant::now() + LIFETIME;
        let mut entries = self.entries();
        entries.retain(|_, (known, until)| known.secret != entry.secret && is_valid(*until));
        for token in tokens.iter().filter(|token| !token.is_empty()) {
            entries.insert(key(token), (entry.clone(), until));
        }
    }

    /// Keeps the payload of a Secret for these tokens, while no newer one can be made: one of them may be new, and machines
    /// that are started meanwhile have it.
    pub(super) fn renew(&self, secret: &str, tokens: &[&str]) {
        let known = {
            let entries = self.entries();
            let mut known = entries.values();
            let known = known.find(|(known, until)| known.secret == secret && is_valid(*until));
            known.map(|(entry, _)| entry.clone())
        };
        if let Some(entry) = known {
            self.put(tokens, &entry);
        }
    }

    /// Returns the payload of a token.
    pub(super) fn get(&self, token: &str) -> Option<Entry> {
        let entries = self.entries();
        let (entry, until) = entries.get(&key(token))?;
        is_valid(*until).then(|| entry.clone())
    }

    /// Removes the payloads of a Secret.
    pub(super) fn forget(&self, secret: &str) {
        self.entries()
            .retain(|_, (known, until)| known.secret != secret && is_valid(*until));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, (Entry, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_valid(until: Instant) -> bool {
    Instant::now() < until
}

fn key(token: &str) -> Key {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(secret: &str) -> Entry {
        Entry {
            secret: secret.to_owned(),
            pool: "clusters/workers".to_owned(),
            payload: Bytes::from_static(b"{}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn payloads_are_kept_for_new_tokens_while_there_is_no_other() {
        let cache = Cache::default();
        cache.renew("a", &["new"]);
        assert_eq!(cache.get("new"), None);
        cache.put(&["old"], &entry("a"));
        cache.put(&["other"], &entry("b"));
        tokio::time::advance(LIFETIME / 2).await;
        cache.renew("a", &["new", "old"]);
        tokio::time::advance(LIFETIME / 2).await;
        assert_eq!(cache.get("new"), Some(entry("a")));
        assert_eq!(cache.get("old"), Some(entry("a")));
        assert_eq!(cache.get("other"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn payloads_expire_or_are_removed() {
        let cache = Cache::default();
        cache.put(&["new", "old", ""], &entry("a"));
        cache.put(&["other"], &entry("b"));
        assert_eq!(cache.get("old"), Some(entry("a")));
        assert_eq!(cache.get(""), None);
        // After a rotation, the token before the previous one is invalid.
        cache.put(&["newer", "new"], &entry("a"));
        assert_eq!(cache.get("old"), None);
        assert_eq!(cache.get("newer"), Some(entry("a")));
        cache.forget("a");
        assert_eq!(cache.get("newer"), None);
        tokio::time::advance(LIFETIME).await;
        assert_eq!(cache.get("other"), None);
    }
}
