//! The groups that were last observed in each namespace. A full read replaces all of them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use ownership::ObservedGroups;

/// How long an entry is used: as long as a full read may be late.
const LIFETIME: Duration = Duration::from_mins(1);

/// What was observed in each namespace, and when the read was started.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<String, (Instant, ObservedGroups)>>);

// === impl Cache ===

impl Cache {
    /// The groups of a namespace, if they were read recently.
    pub(crate) fn get(&self, namespace: &str) -> Option<ObservedGroups> {
        let entries = self.entries();
        let (at, found) = entries.get(namespace)?;
        (at.elapsed() < LIFETIME).then_some(*found)
    }

    /// Records the result of a read that was started at this time.
    pub(crate) fn insert(&self, namespace: &str, started: Instant, found: ObservedGroups) {
        let mut entries = self.entries();
        match entries.get_mut(namespace) {
            Some(last) if last.0 > started => {}
            Some(last) => *last = (started, found),
            None => {
                entries.insert(namespace.to_owned(), (started, found));
            }
        }
    }

    /// Records the result of a full read. Entries of reads that were started later are kept.
    pub(crate) fn replace(&self, started: Instant, found: &HashMap<String, ObservedGroups>) {
        let mut entries = self.entries();
        entries.retain(|_, (at, _)| *at > started);
        for (namespace, found) in found {
            entries
                .entry(namespace.clone())
                .or_insert_with(|| (started, *found));
        }
    }

    /// Removes all entries.
    pub(crate) fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, (Instant, ObservedGroups)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_latest_read_counts_until_it_expires() {
        let cache = Cache::default();
        let first = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = Instant::now();
        cache.insert("a", second, ObservedGroups::Both);
        cache.insert("a", first, ObservedGroups::Private);
        let all = HashMap::from([
            ("a".to_owned(), ObservedGroups::Private),
            ("b".to_owned(), ObservedGroups::Standard),
        ]);
        cache.replace(first, &all);
        assert_eq!(cache.get("a"), Some(ObservedGroups::Both));
        assert_eq!(cache.get("b"), Some(ObservedGroups::Standard));
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.replace(Instant::now(), &HashMap::new());
        assert_eq!(cache.get("a"), None, "it is gone");
        cache.insert("a", Instant::now(), ObservedGroups::Private);
        tokio::time::advance(LIFETIME).await;
        assert_eq!(cache.get("a"), None, "it has expired");
        cache.insert("a", Instant::now(), ObservedGroups::Private);
        cache.clear();
        assert_eq!(cache.get("a"), None);
    }
}
