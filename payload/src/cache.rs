//! Remembers what was read, and has everybody who asks for the same at the same time wait for one answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio::time::Instant;

use crate::error::Error;

type Answer<V> = Result<V, Error>;
type Flight<V> = Shared<BoxFuture<'static, Answer<V>>>;
type Flights<K, V> = HashMap<K, WeakShared<BoxFuture<'static, Answer<V>>>>;

/// Answers by what was asked. Errors are given to all who wait, and not remembered.
pub(crate) struct Cache<K, V> {
    known: Arc<Known<K, V>>,
    flights: Mutex<Flights<K, V>>,
}

/// What was answered; at most so many of them, and those that were not used for the longest time go first.
struct Known<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    capacity: usize,
}

struct Entry<V> {
    value: V,
    learned: Instant,
    used: Instant,
}

// === impl Cache ===

impl<K, V> Cache<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Remembers at most `capacity` answers.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            known: Arc::new(Known {
                entries: Mutex::default(),
                capacity,
            }),
            flights: Mutex::default(),
        }
    }

    /// What is remembered, or what is found out now; by whoever asked first.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        believed: Duration,
        find_out: impl FnOnce() -> F,
    ) -> Answer<V>
    where
        F: Future<Output = Answer<V>> + Send + 'static,
    {
        if let Some(value) = self.known.recall(&key, believed) {
            return Ok(value);
        }
        let flight = self.flight(key, believed, find_out);
        flight.await
    }

    /// What is remembered, however old it is.
    pub(crate) fn stale(&self, key: &K) -> Option<V> {
        self.known.recall(key, Duration::MAX)
    }

    fn flight<F>(&self, key: K, believed: Duration, find_out: impl FnOnce() -> F) -> Flight<V>
    where
        F: Future<Output = Answer<V>> + Send + 'static,
    {
        let mut flights = unpoisoned(&self.flights);
        if let Some(flight) = flights.get(&key).and_then(WeakShared::upgrade) {
            return flight;
        }
        // It may have come to its end a moment ago.
        if let Some(value) = self.known.recall(&key, believed) {
            return std::future::ready(Ok(value)).boxed().shared();
        }
        let (known, learned_as) = (self.known.clone(), key.clone());
        let answer = find_out();
        let flight = async move {
            let answer = answer.await;
            if let Ok(value) = &answer {
                known.remember(learned_as, value.clone());
            }
            answer
        };
        let flight = flight.boxed().shared();
        flights.retain(|_, other| other.upgrade().is_some());
        flights.extend(flight.downgrade().map(|weak| (key, weak)));
        flight
    }
}

// === impl Known ===

impl<K: Clone + Eq + Hash, V: Clone> Known<K, V> {
    fn recall(&self, key: &K, believed: Duration) -> Option<V> {
        let mut entries = unpoisoned(&self.entries);
        let entry = entries.get_mut(key)?;
        if entry.learned.elapsed() > believed {
            return None;
        }
        entry.used = Instant::now();
        Some(entry.value.clone())
    }

    fn remember(&self, key: K, value: V) {
        let mut entries = unpoisoned(&self.entries);
        let now = Instant::now();
        let entry = Entry {
            value,
            learned: now,
            used: now,
        };
        entries.insert(key, entry);
        if entries.len() > self.capacity {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| entries.remove(&key));
        }
    }
}

/// What is behind the lock is whole at every moment, whoever panicked.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::time::advance;

    use super::*;
    use crate::error::Reason;

    const BELIEVED: Duration = Duration::from_mins(1);

    #[derive(Clone, Default)]
    struct Source(Arc<AtomicUsize>);

    impl Source {
        fn asked(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }

        fn ask(&self, answer: Answer<u8>) -> impl Future<Output = Answer<u8>> + Send + 'static {
            let count = self.0.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                count.fetch_add(1, Ordering::Relaxed);
                answer
            }
        }
    }

    fn error() -> Answer<u8> {
        Err(Error::new("registry.example.com/a", Reason::NotFound, "no"))
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_at_once_wait_for_one_answer() {
        let (cache, source) = (Cache::new(8), Source::default());
        let asking = (0..50).map(|_| cache.get("a", BELIEVED, || source.ask(Ok(1))));
        for answer in join_all(asking).await {
            assert_eq!(answer.unwrap(), 1);
        }
        assert_eq!(source.asked(), 1);
        let failing = (0..50).map(|_| cache.get("b", BELIEVED, || source.ask(error())));
        assert!(join_all(failing).await.iter().all(Result::is_err));
        assert_eq!(source.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_goes_away_does_not_take_the_answer_along() {
        let (cache, source) = (Cache::new(8), Source::default());
        let mut first = Box::pin(cache.get("a", BELIEVED, || source.ask(Ok(1))));
        assert!(futures::poll!(&mut first).is_pending());
        let second = cache.get("a", BELIEVED, || source.ask(Ok(2)));
        let mut second = Box::pin(second);
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        assert_eq!(second.await.unwrap(), 1);
        assert_eq!(source.asked(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_believed_for_a_while_and_errors_never() {
        let (cache, source) = (Cache::new(8), Source::default());
        for _ in 0..2 {
            assert!(
                cache
                    .get("a", BELIEVED, || source.ask(error()))
                    .await
                    .is_err()
            );
        }
        assert_eq!(source.asked(), 2);
        for value in 1..=2 {
            let get = cache.get("a", BELIEVED, || source.ask(Ok(value)));
            assert_eq!(get.await.unwrap(), 1);
        }
        advance(BELIEVED * 2).await;
        assert_eq!(cache.stale(&"a"), Some(1));
        let get = cache.get("a", BELIEVED, || source.ask(Ok(3)));
        assert_eq!(get.await.unwrap(), 3);
        assert_eq!(source.asked(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_used_for_long_goes_first() {
        let (cache, source) = (Cache::new(2), Source::default());
        for key in ["a", "b", "a", "c"] {
            cache
                .get(key, BELIEVED, || source.ask(Ok(1)))
                .await
                .unwrap();
            advance(Duration::from_millis(1)).await;
        }
        let kept = ["a", "b", "c"].map(|key| cache.stale(&key).is_some());
        assert_eq!(kept, [true, false, true]);
    }
}
