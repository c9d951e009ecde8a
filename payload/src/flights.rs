//! Reads in progress: those who request the same at the same time share one.
//!
//! A flight runs in a task of its own: it ends when its limits say so, and not when those who wait for it go away.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::error::{Error, Reason};
use crate::memory::unpoisoned;

pub(crate) type ReadResult<V> = Result<V, Error>;
pub(crate) type Flight<V> = Shared<BoxFuture<'static, ReadResult<V>>>;

/// Reads in progress, by what is read.
pub(crate) struct Flights<K, V>(Arc<Mutex<HashMap<K, Flight<V>>>>);

// === impl Flights ===

impl<K, V> Flights<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// The read of `key` that is in progress, or a new one.
    pub(crate) fn join<F>(&self, key: K, read: impl FnOnce() -> F) -> Flight<V>
    where
        F: Future<Output = ReadResult<V>> + Send + 'static,
    {
        let mut flights = unpoisoned(&self.0);
        if let Some(flight) = flights.get(&key) {
            return flight.clone();
        }
        let landed = Landing {
            flights: self.0.clone(),
            key: key.clone(),
        };
        let read = read();
        let flight = spawn(async move {
            let _landed = landed;
            read.await
        });
        flights.insert(key, flight.clone());
        flight
    }
}

/// Removes a flight from the table when it has ended, or was cancelled.
struct Landing<K: Eq + Hash, V> {
    flights: Arc<Mutex<HashMap<K, Flight<V>>>>,
    key: K,
}

impl<K: Eq + Hash, V> Drop for Landing<K, V> {
    fn drop(&mut self) {
        // The flight is dropped after the lock is released: its future may own the last reference to other flights.
        let flight = unpoisoned(&self.flights).remove(&self.key);
        drop(flight);
    }
}

/// Runs a read in a task of its own.
pub(crate) fn spawn<V>(read: impl Future<Output = ReadResult<V>> + Send + 'static) -> Flight<V>
where
    V: Clone + Send + Sync + 'static,
{
    let task = tokio::spawn(read);
    let ended = task.map(|ended| ended.unwrap_or_else(|error| Err(interrupted(error))));
    ended.boxed().shared()
}

fn interrupted(error: tokio::task::JoinError) -> Error {
    Error::new("", Reason::Unreachable, "reading it was interrupted").caused_by(error)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;

    #[derive(Clone, Default)]
    struct Source(Arc<AtomicUsize>);

    impl Source {
        fn reads(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }

        fn read(
            &self,
            result: ReadResult<u8>,
        ) -> impl Future<Output = ReadResult<u8>> + Send + 'static {
            let count = self.0.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                count.fetch_add(1, Ordering::Relaxed);
                result
            }
        }
    }

    fn error() -> ReadResult<u8> {
        Err(Error::new("registry.example.com/a", Reason::NotFound, "no"))
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_readers_share_one_flight() {
        let (flights, source) = (Flights::new(), Source::default());
        let asking = (0..50).map(|_| flights.join("a", || source.read(Ok(1))));
        for result in join_all(asking).await {
            assert_eq!(result.unwrap(), 1);
        }
        assert_eq!(source.reads(), 1);
        let failing = (0..50).map(|_| flights.join("b", || source.read(error())));
        assert!(join_all(failing).await.iter().all(Result::is_err));
        assert_eq!(source.reads(), 2);
        assert!(flights.join("b", || source.read(Ok(2))).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_leaves_does_not_cancel_the_flight() {
        let (flights, source) = (Flights::new(), Source::default());
        let first = flights.join("a", || source.read(Ok(1)));
        let second = flights.join("a", || source.read(Ok(2)));
        drop(first);
        assert_eq!(second.await.unwrap(), 1);
        assert_eq!(source.reads(), 1);
    }
}
