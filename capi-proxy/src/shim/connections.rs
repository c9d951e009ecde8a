//! The open connections, and which one is closed when there are too many. The decision is pure.
//!
//! A new connection is always accepted. When its source, or the process, is at the limit, another one is closed: that of
//! the source with the most connections that has been idle longest, starting with those that never had a response. So a
//! flood closes its own connections, and not those of API servers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::metrics::Metrics;
use super::shares::Shares;
use super::source::Source;

/// Limits for open connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) total: u64,
    pub(super) per_source: u64,
}

/// The open connections. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    table: Arc<Mutex<Table>>,
    metrics: Metrics,
}

/// An open connection, until dropped.
#[derive(Debug)]
pub(super) struct Slot {
    id: u64,
    connections: Connections,
    close: Arc<Notify>,
}

#[derive(Debug)]
struct Table {
    limits: Limits,
    /// The number of responses so far.
    reviews: u64,
    open: Shares<Completed>,
}

/// The number of the last response on a connection; zero before the first.
type Completed = u64;

// === impl Connections ===

impl Connections {
    pub(super) fn new(limits: Limits, metrics: Metrics) -> Self {
        let table = Table {
            limits,
            reviews: 0,
            open: Shares::new(),
        };
        Self {
            table: Arc::new(Mutex::new(table)),
            metrics,
        }
    }

    /// Accepts a connection from `source`, and closes another one if there are too many.
    pub(super) fn accept(&self, source: Source) -> Slot {
        let mut table = self.lock();
        if let Some(id) = table.excess(source) {
            table.open.evict(id);
            self.metrics.connection_displaced();
        }
        let (id, close) = table.open.insert(source, 0);
        self.metrics.connections(table.open.all().len());
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
    /// Records that a review got a response on this connection.
    pub(super) fn completed(&self) {
        let mut table = self.connections.lock();
        table.reviews += 1;
        let now = table.reviews;
        if let Some(completed) = table.open.held_mut(self.id) {
            *completed = now;
        }
    }

    /// Closes the connection when notified.
    pub(super) fn close(&self) -> Arc<Notify> {
        Arc::clone(&self.close)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.connections.lock();
        table.open.remove(self.id);
        self.connections.metrics.connections(table.open.all().len());
    }
}

// === impl Table ===

impl Table {
    /// The connection that is closed for a new one from `source`, if there are too many.
    fn excess(&self, source: Source) -> Option<u64> {
        let counts = self.open.usage(|_, _| 1);
        if counts.get(&source).copied().unwrap_or_default() >= self.limits.per_source {
            return self.longest_idle(source);
        }
        if counts.values().sum::<u64>() < self.limits.total {
            return None;
        }
        let (largest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        self.longest_idle(largest)
    }

    fn longest_idle(&self, source: Source) -> Option<u64> {
        let own = self.open.active().filter(|(_, it)| it.source == source);
        let longest = own.min_by_key(|(id, connection)| (connection.held, *id));
        longest.map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn source(last: u8) -> Source {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    fn connections(total: u64, per_source: u64) -> Connections {
        Connections::new(Limits { total, per_source }, Metrics::new())
    }

    fn is_closing(slot: &Slot) -> bool {
        slot.connections.lock().open.is_evicted(slot.id)
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
    fn idle_connections_close_before_ones_with_responses() {
        let connections = connections(100, 3);
        let server = connections.accept(source(1));
        server.completed();
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
        assert_eq!(connections.lock().open.all().len(), 1);
    }
}
