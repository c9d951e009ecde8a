//! The work queue: pure. An object waits at most once, and has at most one reconcile at a time.
//!
//! A namespace whose objects change all the time does not delay those of others: while objects of other namespaces are
//! due, its reconciles take at most half of the places.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::ObjectKey;

/// Objects in the order of the times at which they are due.
type Order = BTreeSet<(Instant, ObjectKey)>;

#[derive(Debug)]
pub(super) struct Queue {
    debounce: Duration,
    concurrency: usize,
    due: HashMap<ObjectKey, Instant>,
    /// What waits, by namespace. None is empty.
    waiting: HashMap<String, Order>,
    /// The first object of each namespace.
    first: Order,
    running: HashSet<ObjectKey>,
    /// How many of them are in each namespace. None is zero.
    places: HashMap<String, usize>,
    /// Those of them that were requested again.
    dirty: HashSet<ObjectKey>,
}

// === impl Queue ===

impl Queue {
    pub(super) fn new(debounce: Duration, concurrency: usize) -> Self {
        Self {
            debounce,
            concurrency: concurrency.max(1),
            due: HashMap::new(),
            waiting: HashMap::new(),
            first: Order::new(),
            running: HashSet::new(),
            places: HashMap::new(),
            dirty: HashSet::new(),
        }
    }

    /// Objects that wait.
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }

    /// An object is requested.
    pub(super) fn add(&mut self, key: ObjectKey, now: Instant) {
        if self.running.contains(&key) {
            self.dirty.insert(key);
            return;
        }
        self.schedule(key, now + self.debounce);
    }

    /// The next object that is due, if a reconcile may start. It runs until it is [finished](Self::finish).
    pub(super) fn pop(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.next_due()? > now {
            return None;
        }
        let (at, key) = self.next(now)?.clone();
        self.change(&key.namespace, |waiting| {
            waiting.remove(&(at, key.clone()));
        });
        self.due.remove(&key);
        self.running.insert(key.clone());
        *self.places.entry(key.namespace.clone()).or_default() += 1;
        Some(key)
    }

    /// When the next reconcile can start; none while the concurrency is used up.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let has_place = self.running.len() < self.concurrency;
        let (at, _) = self.first.first().filter(|_| has_place)?;
        Some(*at)
    }

    /// A reconcile has ended.
    pub(super) fn finish(&mut self, key: ObjectKey, after: Option<Duration>, now: Instant) {
        if self.running.remove(&key) {
            self.leave(&key.namespace);
        }
        if self.dirty.remove(&key) {
            self.schedule(key.clone(), now + self.debounce);
        }
        if let Some(after) = after {
            self.schedule(key, now + after);
        }
    }

    /// The first object of a namespace that has less than half of the places; if only others are due, no place stays free.
    fn next(&self, now: Instant) -> Option<&(Instant, ObjectKey)> {
        let share = (self.concurrency / 2).max(1);
        let has_share = |namespace: &str| self.places.get(namespace).is_none_or(|it| *it < share);
        let mut due = self.first.iter().take_while(|(at, _)| *at <= now);
        // Only few namespaces have half of the places, so few are passed over.
        let next = due.clone().find(|(_, key)| has_share(&key.namespace));
        next.or_else(|| due.next())
    }

    /// A reconcile in a namespace has given back its place.
    fn leave(&mut self, namespace: &str) {
        if let Some(places) = self.places.get_mut(namespace) {
            *places -= 1;
            if *places == 0 {
                self.places.remove(namespace);
            }
        }
    }

    /// The earliest time counts.
    fn schedule(&mut self, key: ObjectKey, at: Instant) {
        let known = self.due.get(&key).copied();
        if known.is_some_and(|known| known <= at) {
            return;
        }
        self.change(&key.namespace, |waiting| {
            if let Some(known) = known {
                waiting.remove(&(known, key.clone()));
            }
            waiting.insert((at, key.clone()));
        });
        self.due.insert(key, at);
    }

    /// Changes what waits in a namespace.
    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Order)) {
        let mut waiting = self.waiting.remove(namespace).unwrap_or_default();
        if let Some(first) = waiting.first() {
            self.first.remove(first);
        }
        change(&mut waiting);
        if let Some(first) = waiting.first() {
            self.first.insert(first.clone());
            self.waiting.insert(namespace.to_owned(), waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T02.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_takes_half_of_the_places_while_others_wait() {
        // What is requested, how many run at most, and the namespaces of those that run, in order.
        let cases: [(&str, usize, &str); 7] = [
            ("aaaaaaaa", 4, "aaaa"),
            ("aaaaaaab", 4, "aaba"),
            ("aaaaaabb", 4, "aabb"),
            ("aaaabbbbcc", 4, "aabb"),
            ("abcdaaaa", 4, "abcd"),
            ("aaaaab", 3, "aba"),
            ("aab", 1, "a"),
        ];
        for (requested, concurrency, expected) in cases {
            let mut queue = Queue::new(Duration::ZERO, concurrency);
            let begun = Instant::now();
            let mut now = begun;
            for (name, namespace) in requested.chars().enumerate() {
                queue.add(ObjectKey::new(namespace.to_string(), name.to_string()), now);
                now += Duration::from_millis(1);
            }
            let running: Vec<_> = std::iter::from_fn(|| queue.pop(now)).collect();
            let namespaces: String = running.iter().map(|it| it.namespace.as_str()).collect();
            assert_eq!(namespaces, expected, "{requested} in {concurrency} places");
            assert_eq!(queue.len(), requested.len() - expected.len());
            // All get their turn, and nothing is left over.
            let mut count = running.len();
            let mut ended = running;
            while let Some(key) = ended.pop() {
                queue.finish(key, None, now);
                let next: Vec<_> = std::iter::from_fn(|| queue.pop(now)).collect();
                count += next.len();
                ended.extend(next);
            }
            assert_eq!(count, requested.len(), "{requested}");
            let is_empty = queue.waiting.is_empty() && queue.first.is_empty();
            assert!(is_empty && queue.places.is_empty(), "{requested}");
        }
    }

    /// Check T02.
    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_has_all_places_gives_the_next_to_another() {
        let mut queue = Queue::new(Duration::ZERO, 4);
        let now = Instant::now();
        for name in 0..1000 {
            queue.add(ObjectKey::new("a", name.to_string()), now);
        }
        let running: Vec<_> = std::iter::from_fn(|| queue.pop(now)).collect();
        assert_eq!(running.len(), 4);
        let late = now + Duration::from_secs(1);
        for name in 0..3 {
            queue.add(ObjectKey::new("b", name.to_string()), late);
        }
        let mut next = String::new();
        for key in running {
            queue.finish(key, None, late);
            next.push_str(&queue.pop(late).unwrap().namespace);
        }
        assert_eq!(next, "bbaa", "each has half");
    }
}
