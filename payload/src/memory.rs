//! Remembers what was read, bounded by bytes.
//!
//! Every entry counts for the tenant that had it read. When memory is full, the tenant that holds the most gives up its
//! least recently used entry, so that one tenant cannot evict the releases of the others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What an entry takes beside its value: the key, the table and the allocator.
const OVERHEAD: usize = 256;

/// Values by key, of at most so many bytes in all.
pub(crate) struct Memory<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    capacity: usize,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes, as they are accounted.
    pub bytes: usize,
    /// Entries.
    pub entries: usize,
}

struct Entry<V> {
    value: V,
    bytes: usize,
    owner: Arc<str>,
    learned: Instant,
    used: Instant,
}

// === impl Memory ===

impl<K: Clone + Eq + Hash, V: Clone> Memory<K, V> {
    /// Remembers at most `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: Mutex::default(),
            capacity,
        }
    }

    /// What is remembered, unless it is older than `max_age`.
    pub(crate) fn recall(&self, key: &K, max_age: Duration) -> Option<V> {
        let mut entries = unpoisoned(&self.entries);
        let entry = entries.get_mut(key)?;
        if entry.learned.elapsed() > max_age {
            return None;
        }
        entry.used = Instant::now();
        Some(entry.value.clone())
    }

    /// What is remembered, however old it is.
    pub(crate) fn stale(&self, key: &K) -> Option<V> {
        self.recall(key, Duration::MAX)
    }

    /// Remembers a value of `bytes` that was read for `owner`. A value that is larger than all memory is not kept.
    pub(crate) fn remember(&self, key: K, value: V, bytes: usize, owner: &Arc<str>) {
        let bytes = bytes + OVERHEAD;
        if bytes > self.capacity {
            return;
        }
        let now = Instant::now();
        let entry = Entry {
            value,
            bytes,
            owner: owner.clone(),
            learned: now,
            used: now,
        };
        let mut entries = unpoisoned(&self.entries);
        entries.insert(key, entry);
        evict(&mut entries, self.capacity);
    }

    /// How much is remembered.
    pub(crate) fn held(&self) -> Held {
        let entries = unpoisoned(&self.entries);
        Held {
            bytes: total(&entries),
            entries: entries.len(),
        }
    }
}

fn total<K, V>(entries: &HashMap<K, Entry<V>>) -> usize {
    entries.values().map(|entry| entry.bytes).sum()
}

/// Removes entries of those who hold the most until the rest fits.
fn evict<K: Clone + Eq + Hash, V>(entries: &mut HashMap<K, Entry<V>>, capacity: usize) {
    let mut left = total(entries);
    while left > capacity {
        let owner = largest_owner(entries);
        let of_owner = entries.iter().filter(|(_, entry)| entry.owner == owner);
        let oldest = of_owner.min_by_key(|(_, entry)| entry.used);
        let Some(key) = oldest.map(|(key, _)| key.clone()) else {
            return;
        };
        left -= entries.remove(&key).map_or(0, |entry| entry.bytes);
    }
}

fn largest_owner<K, V>(entries: &HashMap<K, Entry<V>>) -> Arc<str> {
    let mut held: HashMap<&Arc<str>, usize> = HashMap::new();
    for entry in entries.values() {
        *held.entry(&entry.owner).or_default() += entry.bytes;
    }
    let largest = held.into_iter().max_by_key(|(_, bytes)| *bytes);
    largest.map_or_else(|| Arc::from(""), |(owner, _)| owner.clone())
}

/// Locks. What is behind the lock is consistent at every moment, even if a holder panicked.
pub(crate) fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const AGE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn values_expire_and_stay_available_as_stale() {
        let memory = Memory::new(10_000);
        memory.remember("a", 1, 10, &Arc::from("t"));
        assert_eq!(memory.recall(&"a", AGE), Some(1));
        advance(AGE * 2).await;
        assert_eq!(memory.recall(&"a", AGE), None);
        assert_eq!(memory.stale(&"a"), Some(1));
    }

    /// Check T12.
    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_by_bytes_with_lru_eviction() {
        let entry = 1000 + OVERHEAD;
        let memory = Memory::new(2 * entry);
        let owner = Arc::from("t");
        for key in ["a", "b", "a", "c"] {
            if memory.stale(&key).is_none() {
                memory.remember(key, 1, 1000, &owner);
            }
            advance(Duration::from_millis(1)).await;
        }
        let kept = ["a", "b", "c"].map(|key| memory.stale(&key).is_some());
        assert_eq!(kept, [true, false, true]);
        let expected = Held {
            bytes: 2 * entry,
            entries: 2,
        };
        assert_eq!(memory.held(), expected);
        memory.remember("too large", 1, 2 * entry, &owner);
        assert_eq!(memory.held(), expected);
    }

    /// Check T12.
    #[tokio::test(start_paused = true)]
    async fn a_tenant_evicts_its_own_entries_first() {
        let memory = Memory::new(10 * (1000 + OVERHEAD));
        let (quiet, greedy) = (Arc::from("quiet"), Arc::from("greedy"));
        for key in 0..2 {
            memory.remember(key, 1, 1000, &quiet);
        }
        for key in 100..200 {
            advance(Duration::from_millis(1)).await;
            memory.remember(key, 1, 1000, &greedy);
        }
        assert!((0..2).all(|key| memory.stale(&key).is_some()));
        assert_eq!(memory.held().entries, 10);
    }
}
