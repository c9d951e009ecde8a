//! The shares of clients in a limited resource, by source, and which of them has to release its share. Pure.
//!
//! Connections and memory are shared in the same way: when there is too little, the source that holds most gives up one
//! of its shares. Which one that is depends on the resource.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::source::Source;

/// The shares of all clients.
#[derive(Debug)]
pub(super) struct Shares<T> {
    next: u64,
    shares: HashMap<u64, Share<T>>,
}

/// What one connection or review holds.
#[derive(Debug)]
pub(super) struct Share<T> {
    pub(super) source: Source,
    pub(super) held: T,
    /// It is being aborted, and is no longer counted.
    evicted: bool,
    evict: Arc<Notify>,
}

// === impl Shares ===

impl<T> Shares<T> {
    /// No shares.
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            shares: HashMap::new(),
        }
    }

    /// Adds a share. The holder has to end it when it is notified.
    pub(super) fn insert(&mut self, source: Source, held: T) -> (u64, Arc<Notify>) {
        let id = self.next;
        self.next += 1;
        let evict = Arc::new(Notify::new());
        let share = Share {
            source,
            held,
            evicted: false,
            evict: Arc::clone(&evict),
        };
        self.shares.insert(id, share);
        (id, evict)
    }

    /// Removes a share that has ended.
    pub(super) fn remove(&mut self, id: u64) {
        self.shares.remove(&id);
    }

    /// All shares, including those that are being aborted.
    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &Share<T>> {
        self.shares.values()
    }

    /// The shares that are not being aborted.
    pub(super) fn active(&self) -> impl Iterator<Item = (u64, &Share<T>)> {
        let shares = self.shares.iter().map(|(id, share)| (*id, share));
        shares.filter(|(_, share)| !share.evicted)
    }

    /// The share, unless it is being aborted.
    pub(super) fn get(&self, id: u64) -> Option<&Share<T>> {
        self.shares.get(&id).filter(|share| !share.evicted)
    }

    /// What a share holds.
    pub(super) fn held_mut(&mut self, id: u64) -> Option<&mut T> {
        self.shares.get_mut(&id).map(|share| &mut share.held)
    }

    /// How much each source holds, of active shares.
    pub(super) fn usage(&self, of: impl Fn(u64, &T) -> u64) -> HashMap<Source, u64> {
        let mut usage = HashMap::new();
        for (id, share) in self.active() {
            *usage.entry(share.source).or_default() += of(id, &share.held);
        }
        usage
    }

    /// Aborts a share.
    pub(super) fn evict(&mut self, id: u64) {
        if let Some(share) = self.shares.get_mut(&id) {
            share.evicted = true;
            share.evict.notify_one();
        }
    }
}

#[cfg(test)]
impl<T> Shares<T> {
    pub(super) fn is_evicted(&self, id: u64) -> bool {
        self.shares[&id].evicted
    }
}
