//! Payloads by token, for as long as they may be asked for.
//!
//! Tokens themselves are not kept: only what they hash to, so that neither a look-up's time nor a dump reveals one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// How long a payload is kept without being rendered again.
pub(super) const LIFETIME: Duration = Duration::from_hours(11);

type Key = [u8; 32];

/// What a machine with the right token gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The Secret that the token is in.
    pub(super) secret: String,
    /// The pool, as `<namespace>/<name>`.
    pub(super) pool: String,
    /// Ignition.
    pub(super) payload: Bytes,
}

/// All payloads.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: Mutex<HashMap<Key, (Entry, Instant)>>,
}

// === impl Cache ===

impl Cache {
    /// Keeps a payload under these tokens, and under no others of its Secret.
    pub(super) fn put(&self, tokens: &[&str], entry: &Entry) {
        let until = Instant::now() + LIFETIME;
        let mut entries = self.entries();
        entries.retain(|_, (known, until)| known.secret != entry.secret && is_alive(*until));
        for token in tokens.iter().filter(|token| !token.is_empty()) {
            entries.insert(key(token), (entry.clone(), until));
        }
    }

    /// What a token gives.
    pub(super) fn get(&self, token: &str) -> Option<Entry> {
        let entries = self.entries();
        let (entry, until) = entries.get(&key(token))?;
        is_alive(*until).then(|| entry.clone())
    }

    /// Drops what a Secret gave: its tokens are worth nothing any more.
    pub(super) fn forget(&self, secret: &str) {
        self.entries()
            .retain(|_, (known, until)| known.secret != secret && is_alive(*until));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, (Entry, Instant)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_alive(until: Instant) -> bool {
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
    async fn payloads_live_until_they_are_forgotten_or_old() {
        let cache = Cache::default();
        cache.put(&["new", "old", ""], &entry("a"));
        cache.put(&["other"], &entry("b"));
        assert_eq!(cache.get("old"), Some(entry("a")));
        assert_eq!(cache.get(""), None);
        // A rotation: the token before the last is worth nothing any more.
        cache.put(&["newer", "new"], &entry("a"));
        assert_eq!(cache.get("old"), None);
        assert_eq!(cache.get("newer"), Some(entry("a")));
        cache.forget("a");
        assert_eq!(cache.get("newer"), None);
        tokio::time::advance(LIFETIME).await;
        assert_eq!(cache.get("other"), None);
    }
}
