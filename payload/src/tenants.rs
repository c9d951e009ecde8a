//! Reads of tenants that do not trust each other: how many a tenant has at once, and how long a reconcile waits for one.
//!
//! A reconcile occupies one of few workers while it waits. So it waits briefly, only a few reconciles of one tenant wait
//! at the same time, and none waits for a tenant of which a read already takes long. The read continues in the background;
//! the reconcile is requeued, and finds what was read, or why it failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::flights::{Flight, ReadResult, spawn};
use crate::limits::Limits;
use crate::memory::unpoisoned;

/// Reconciles of one tenant that wait at the same time.
const WAITING_AT_ONCE: usize = 4;

/// What a tenant reads: the tenant and the read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question<K> {
    pub(crate) tenant: Arc<str>,
    pub(crate) read: K,
}

/// Reads of all tenants.
pub(crate) struct Reads<K, V> {
    limits: Limits,
    table: Arc<Mutex<Table<K, V>>>,
}

struct Table<K, V> {
    tenants: HashMap<Arc<str>, Tenant>,
    reads: HashMap<Question<K>, Read<V>>,
}

#[derive(Clone)]
struct Tenant {
    /// Reads at once.
    reading: Arc<Semaphore>,
    /// Reconciles that wait.
    waiting: Arc<Semaphore>,
}

enum Read<V> {
    Running {
        since: Instant,
        flight: Flight<V>,
        /// Why the read before it failed.
        last: Option<Error>,
    },
    Failed {
        error: Error,
        at: Instant,
    },
}

/// What there is to do about a question.
enum Step<V> {
    Report(Error),
    Wait {
        since: Instant,
        flight: Flight<V>,
        last: Option<Error>,
        /// Where to wait; nothing if the tenant has slow reads.
        waiting: Option<Arc<Semaphore>>,
    },
}

// === impl Reads ===

impl<K, V> Reads<K, V>
where
    K: Clone + Eq + std::hash::Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// None yet.
    pub(crate) fn new(limits: Limits) -> Self {
        let table = Table {
            tenants: HashMap::new(),
            reads: HashMap::new(),
        };
        Self {
            limits,
            table: Arc::new(Mutex::new(table)),
        }
    }

    /// The result of the read, if it is available soon; otherwise the last error, or that it is in progress.
    pub(crate) async fn get<F>(
        &self,
        question: Question<K>,
        image: &str,
        read: impl FnOnce() -> F,
    ) -> ReadResult<V>
    where
        F: Future<Output = ReadResult<V>> + Send + 'static,
    {
        let (since, flight, last, waiting) = match self.step(question, read) {
            Step::Report(error) => return Err(error),
            Step::Wait {
                since,
                flight,
                last,
                waiting,
            } => (since, flight, last, waiting),
        };
        let rest = self.limits.wait.saturating_sub(since.elapsed());
        if let Some(place) = waiting.as_ref().and_then(|it| it.try_acquire().ok()) {
            let ended = timeout(rest, flight).await;
            drop(place);
            if let Ok(result) = ended {
                return result;
            }
        }
        let taken = since.elapsed().max(self.limits.wait);
        Err(last.unwrap_or_else(|| Error::in_progress(image, taken)))
    }

    fn step<F>(&self, question: Question<K>, read: impl FnOnce() -> F) -> Step<V>
    where
        F: Future<Output = ReadResult<V>> + Send + 'static,
    {
        let mut table = unpoisoned(&self.table);
        table.prune();
        let slow = table.is_slow(&question.tenant, &self.limits);
        let tenant = table.tenant(&question.tenant, &self.limits);
        let waiting = (!slow).then(|| tenant.waiting.clone());
        let last = match table.reads.get(&question) {
            Some(Read::Failed { error, at }) if at.elapsed() < Limits::RETRY_AFTER => {
                return Step::Report(error.clone());
            }
            Some(Read::Running {
                since,
                flight,
                last,
            }) => {
                return Step::Wait {
                    since: *since,
                    flight: flight.clone(),
                    last: last.clone(),
                    waiting,
                };
            }
            Some(Read::Failed { error, .. }) => Some(error.clone()),
            None => None,
        };
        let since = Instant::now();
        let flight = self.start(question.clone(), tenant, since, read());
        let running = Read::Running {
            since,
            flight: flight.clone(),
            last: last.clone(),
        };
        table.reads.insert(question, running);
        Step::Wait {
            since,
            flight,
            last,
            waiting,
        }
    }

    /// Reads when it is the turn of the tenant, and records how it ended.
    fn start<F>(&self, question: Question<K>, tenant: Tenant, since: Instant, read: F) -> Flight<V>
    where
        F: Future<Output = ReadResult<V>> + Send + 'static,
    {
        let (table, wait) = (self.table.clone(), self.limits.wait);
        spawn(async move {
            let turn = tenant.reading.acquire().await;
            let result = read.await;
            drop(turn);
            let slow = since.elapsed() >= wait;
            let ended = match &result {
                // It may have ended when no reconcile waited for it any more.
                Err(error) if slow => Some(Read::Failed {
                    error: error.clone(),
                    at: Instant::now(),
                }),
                Err(_) | Ok(_) => None,
            };
            let mut table = unpoisoned(&table);
            let running = match ended {
                Some(failed) => table.reads.insert(question, failed),
                None => table.reads.remove(&question),
            };
            drop(table);
            drop(running);
            result
        })
    }
}

// === impl Table ===

impl<K: Clone + Eq + std::hash::Hash, V> Table<K, V> {
    fn tenant(&mut self, name: &Arc<str>, limits: &Limits) -> Tenant {
        let new = || Tenant {
            reading: Arc::new(Semaphore::new(limits.reads_per_tenant)),
            waiting: Arc::new(Semaphore::new(WAITING_AT_ONCE)),
        };
        let tenant = self.tenants.entry(name.clone()).or_insert_with(new);
        tenant.clone()
    }

    /// Whether a read of the tenant takes long already: reconciles do not wait for this tenant then.
    fn is_slow(&self, tenant: &Arc<str>, limits: &Limits) -> bool {
        self.reads.iter().any(|(question, read)| {
            let old = match read {
                Read::Running { since, .. } => since.elapsed() >= limits.wait,
                Read::Failed { .. } => false,
            };
            old && question.tenant == *tenant
        })
    }

    /// Forgets errors that were not requested again, and tenants without reads.
    fn prune(&mut self) {
        self.reads.retain(|_, read| match read {
            Read::Running { .. } => true,
            Read::Failed { at, .. } => at.elapsed() < Limits::RETRY_AFTER * 5,
        });
        self.tenants.retain(|_, tenant| {
            Arc::strong_count(&tenant.reading) > 1 || Arc::strong_count(&tenant.waiting) > 1
        });
    }
}

#[cfg(test)]
mod tests;
