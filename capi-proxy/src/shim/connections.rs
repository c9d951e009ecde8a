//! How many connections are open, and which one is closed in favour of another. The decision is pure.
//!
//! A new connection is always accepted. When its source, or the process, has as many as it may have, another one is
//! closed: of the source with the most connections the one that was answered longest ago, and before all others one
//! that was never answered. So a flood closes its own connections, and not those that API servers work with.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::metrics::Metrics;
use super::source::Source;

/// How many connections may be open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) total: usize,
    pub(super) per_source: usize,
}

/// The open connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    table: Arc<Mutex<Table>>,
    metrics: Metrics,
}

/// A place in the table, until dropped.
#[derive(Debug)]
pub(super) struct Slot {
    id: u64,
    connections: Connections,
    close: Arc<Notify>,
}

#[derive(Debug)]
struct Table {
    limits: Limits,
    /// Counts accepted connections and answers: the clock of the table.
    clock: u64,
    open: HashMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    source: Source,
    /// When it was answered last; zero if it never was.
    answered: u64,
    /// It was asked to close, and is not counted any more.
    closing: bool,
    close: Arc<Notify>,
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(limits: Limits, metrics: Metrics) -> Self {
        let table = Table {
            limits,
            clock: 0,
            open: HashMap::new(),
        };
        Self {
            table: Arc::new(Mutex::new(table)),
            metrics,
        }
    }

    /// Accepts a connection from `source`, and closes another one if there are too many.
    pub(super) fn accept(&self, source: Source) -> Slot {
        let close = Arc::new(Notify::new());
        let mut table = self.lock();
        if let Some(victim) = table.victim(source) {
            table.close(victim);
            self.metrics.connection_displaced();
        }
        let id = table.insert(source, Arc::clone(&close));
        self.metrics.connections(table.open.len());
        Slot {
            id,
            connections: self.clone(),
            close,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Slot ===

impl Slot {
    /// The connection was of use.
    pub(super) fn answered(&self) {
        let mut table = self.connections.lock();
        table.clock += 1;
        let now = table.clock;
        if let Some(open) = table.open.get_mut(&self.id) {
            open.answered = now;
        }
    }

    /// What closes the connection when notified.
    pub(super) fn close(&self) -> Arc<Notify> {
        Arc::clone(&self.close)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.open.remove(&self.id);
        self.connections.metrics.connections(table.open.len());
    }
}

// === impl Table ===

impl Table {
    /// The connection that is closed for one from `source`, if one has to be.
    fn victim(&self, source: Source) -> Option<u64> {
        let mut counts: HashMap<Source, usize> = HashMap::new();
        for open in self.counted() {
            *counts.entry(open.source).or_default() += 1;
        }
        let total: usize = counts.values().sum();
        if counts.get(&source).copied().unwrap_or_default() >= self.limits.per_source {
            return self.least_useful(source);
        }
        if total < self.limits.total {
            return None;
        }
        let (largest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        self.least_useful(largest)
    }

    fn counted(&self) -> impl Iterator<Item = &Open> {
        self.open.values().filter(|open| !open.closing)
    }

    fn least_useful(&self, source: Source) -> Option<u64> {
        let open = self.open.iter();
        let own = open.filter(|(_, open)| open.source == source && !open.closing);
        let least = own.min_by_key(|(id, open)| (open.answered, **id));
        least.map(|(id, _)| *id)
    }

    fn close(&mut self, id: u64) {
        if let Some(open) = self.open.get_mut(&id) {
            open.closing = true;
            open.close.notify_one();
        }
    }

    fn insert(&mut self, source: Source, close: Arc<Notify>) -> u64 {
        self.clock += 1;
        let open = Open {
            source,
            answered: 0,
            closing: false,
            close,
        };
        self.open.insert(self.clock, open);
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn source(last: u8) -> Source {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    fn connections(total: usize, per_source: usize) -> Connections {
        Connections::new(Limits { total, per_source }, Metrics::new())
    }

    fn is_closing(slot: &Slot) -> bool {
        slot.connections.lock().open[&slot.id].closing
    }

    /// Check T06.
    #[test]
    fn a_flood_closes_its_own_connections() {
        let connections = connections(4, 4);
        let server = connections.accept(source(1));
        let flood: Vec<Slot> = (0..20).map(|_| connections.accept(source(2))).collect();
        assert!(!is_closing(&server));
        assert_eq!(flood.iter().filter(|slot| !is_closing(slot)).count(), 3);
        // Another API server connects in the middle of it.
        let second = connections.accept(source(3));
        assert!(!is_closing(&server) && !is_closing(&second));
        assert_eq!(flood.iter().filter(|slot| !is_closing(slot)).count(), 2);
    }

    /// Check T06.
    #[test]
    fn idle_connections_close_before_ones_that_were_answered() {
        let connections = connections(100, 3);
        let server = connections.accept(source(1));
        server.answered();
        let flood: Vec<Slot> = (0..50).map(|_| connections.accept(source(1))).collect();
        assert!(!is_closing(&server));
        assert_eq!(flood.iter().filter(|slot| !is_closing(slot)).count(), 2);
    }

    #[test]
    fn a_closed_connection_frees_its_slot() {
        let connections = connections(1, 1);
        drop(connections.accept(source(1)));
        let second = connections.accept(source(2));
        assert!(!is_closing(&second));
        assert_eq!(connections.lock().open.len(), 1);
    }
}
