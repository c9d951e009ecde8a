//! The work queue: pure. An object waits at most once, and has at most one reconcile at a time.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::ObjectKey;

#[derive(Debug)]
pub(super) struct Queue {
    debounce: Duration,
    concurrency: usize,
    due: HashMap<ObjectKey, Instant>,
    order: BTreeSet<(Instant, ObjectKey)>,
    running: HashSet<ObjectKey>,
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
            order: BTreeSet::new(),
            running: HashSet::new(),
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
        let (_, key) = self.order.pop_first()?;
        self.due.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// When the next reconcile can start; none while the concurrency is used up.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let has_place = self.running.len() < self.concurrency;
        let (at, _) = self.order.first().filter(|_| has_place)?;
        Some(*at)
    }

    /// A reconcile has ended.
    pub(super) fn finish(&mut self, key: ObjectKey, after: Option<Duration>, now: Instant) {
        self.running.remove(&key);
        if self.dirty.remove(&key) {
            self.schedule(key.clone(), now + self.debounce);
        }
        if let Some(after) = after {
            self.schedule(key, now + after);
        }
    }

    /// The earliest time counts.
    fn schedule(&mut self, key: ObjectKey, at: Instant) {
        if let Some(known) = self.due.get(&key) {
            if *known <= at {
                return;
            }
            self.order.remove(&(*known, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.order.insert((at, key));
    }
}
