//! Reads of tenants that do not trust each other: how many a tenant has at once, and how long a reconcile waits for one.
//!
//! A reconcile occupies one of few workers while it waits. So it waits briefly, only a few reconciles of one tenant wait
//! at the same time, and none waits for a tenant of which a read already takes long. The read continues in the background;
//! the reconcile is requeued, and finds what was read, or why it failed.
//!
//! A read that was started holds memory, also while it waits for its turn. So a tenant has few of them; of the others only
//! the place in the queue is kept, and the read is started when its reconcile returns and it is its turn.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::flights::{Flight, ReadResult, spawn};
use crate::limits::Limits;
use crate::memory::unpoisoned;

/// Reconciles of one tenant that wait at the same time.
const WAITING_AT_ONCE: usize = 4;
/// Reads of one tenant that were started and have not ended.
const RUNNING_AT_ONCE: usize = 16;
/// How long a read keeps its place in the queue without a reconcile that requests it: several times the longest retry.
const PLACE_KEPT: Duration = Duration::from_mins(1);
/// The longest queue of one tenant. Reads beyond it get a place when it has become shorter.
const LONGEST_QUEUE: usize = 1024;
/// The most errors that are known of one tenant.
const MOST_ERRORS: usize = 1024;
/// How long an error is known after the registry may be read again.
const ERROR_KEPT: Duration = Limits::RETRY_AFTER.saturating_mul(5);

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
    tenants: HashMap<Arc<str>, Tenant<K, V>>,
    hasher: RandomState,
    /// When tenants that request nothing any more were last removed.
    pruned: Instant,
}

/// A request looks at the state of its own tenant only.
struct Tenant<K, V> {
    /// Reads at once.
    reading: Arc<Semaphore>,
    /// Reconciles that wait.
    waiting: Arc<Semaphore>,
    /// At most [`RUNNING_AT_ONCE`].
    running: HashMap<K, Running<V>>,
    /// Errors of reads, by their hash like places in the queue; at most [`MOST_ERRORS`].
    failed: HashMap<u64, Failed>,
    /// Reads that are not started yet, the oldest first.
    queue: Vec<Place>,
}

#[derive(Clone)]
struct Running<V> {
    since: Instant,
    flight: Flight<V>,
    /// Why the read before it failed.
    last: Option<Error>,
}

struct Failed {
    error: Error,
    at: Instant,
}

/// A place in the queue. The read is known by its hash: the key names all mirrors, and would take too much memory.
struct Place {
    read: u64,
    since: Instant,
    /// When a reconcile last requested it.
    requested: Instant,
}

/// What there is to do about a question.
enum Step<V> {
    Report(Error),
    Wait {
        running: Running<V>,
        /// Where to wait; nothing if the tenant has slow reads.
        waiting: Option<Arc<Semaphore>>,
    },
    /// It is not its turn.
    Queued {
        since: Instant,
        last: Option<Error>,
    },
}

/// Ends a read in the table, also if it was cancelled or has panicked.
struct Ending<K: Clone + Eq + Hash, V> {
    table: Arc<Mutex<Table<K, V>>>,
    question: Question<K>,
    /// An error to remember.
    failed: Option<Error>,
}

// === impl Reads ===

impl<K, V> Reads<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// None yet.
    pub(crate) fn new(limits: Limits) -> Self {
        let table = Table {
            tenants: HashMap::new(),
            hasher: RandomState::new(),
            pruned: Instant::now(),
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
        let (running, waiting) = match self.step(question, read) {
            Step::Report(error) => return Err(error),
            Step::Queued { since, last } => {
                let taken = since.elapsed().max(self.limits.wait);
                return Err(match last {
                    // It is requested again soon, so that it keeps its place.
                    Some(error) => error.retried_after(taken),
                    None => Error::queued(image, taken, RUNNING_AT_ONCE),
                });
            }
            Step::Wait { running, waiting } => (running, waiting),
        };
        let Running {
            since,
            flight,
            last,
        } = running;
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
        let hash = table.hasher.hash_one(&question.read);
        let tenant = table.tenant(&question.tenant, &self.limits);
        let waiting = (!tenant.is_slow(&self.limits)).then(|| tenant.waiting.clone());
        if let Some(running) = tenant.running.get(&question.read) {
            let running = running.clone();
            return Step::Wait { running, waiting };
        }
        let last = match tenant.failed.get(&hash) {
            Some(Failed { error, at }) if at.elapsed() < Limits::RETRY_AFTER => {
                return Step::Report(error.clone());
            }
            failed => failed.map(|it| it.error.clone()),
        };
        if let Err(since) = tenant.take_turn(hash) {
            return Step::Queued { since, last };
        }
        let since = Instant::now();
        let flight = self.start(question.clone(), tenant.reading.clone(), since, read());
        let running = Running {
            since,
            flight,
            last,
        };
        tenant.failed.remove(&hash);
        tenant.running.insert(question.read, running.clone());
        Step::Wait { running, waiting }
    }

    /// Reads when it is the turn of the tenant, and records how it ended.
    fn start<F>(
        &self,
        question: Question<K>,
        reading: Arc<Semaphore>,
        since: Instant,
        read: F,
    ) -> Flight<V>
    where
        F: Future<Output = ReadResult<V>> + Send + 'static,
    {
        let (table, wait) = (self.table.clone(), self.limits.wait);
        spawn(async move {
            // Not before the first poll: the table is locked now, and a runtime that shuts down drops the task at once.
            let mut ending = Ending {
                table,
                question,
                failed: None,
            };
            let turn = reading.acquire().await;
            let result = read.await;
            drop(turn);
            // A slow read may have ended when no reconcile waited for it any more.
            if since.elapsed() >= wait {
                ending.failed = result.as_ref().err().cloned();
            }
            drop(ending);
            result
        })
    }
}

// === impl Table ===

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    fn tenant(&mut self, name: &Arc<str>, limits: &Limits) -> &mut Tenant<K, V> {
        let new = || Tenant {
            reading: Arc::new(Semaphore::new(limits.reads_per_tenant)),
            waiting: Arc::new(Semaphore::new(WAITING_AT_ONCE)),
            running: HashMap::new(),
            failed: HashMap::new(),
            queue: Vec::new(),
        };
        self.tenants.entry(name.clone()).or_insert_with(new)
    }

    /// Forgets errors and places that were not requested again, and tenants without reads. It looks at all tenants, so it
    /// does so rarely.
    fn prune(&mut self) {
        if self.pruned.elapsed() < Limits::RETRY_AFTER {
            return;
        }
        self.pruned = Instant::now();
        self.tenants.retain(|_, tenant| {
            let failed = &mut tenant.failed;
            failed.retain(|_, failed| failed.at.elapsed() < ERROR_KEPT);
            tenant.leave_queue();
            !tenant.is_idle()
        });
    }

    /// Removes a read that has ended, and returns it: it has to be dropped after the table is released.
    fn end(&mut self, question: &Question<K>, failed: Option<Error>) -> Option<Running<V>> {
        let hash = self.hasher.hash_one(&question.read);
        let tenant = self.tenants.get_mut(&question.tenant)?;
        let running = tenant.running.remove(&question.read);
        if let Some(error) = failed {
            tenant.remember(hash, error);
        }
        if tenant.is_idle() {
            self.tenants.remove(&question.tenant);
        }
        running
    }
}

// === impl Tenant ===

impl<K, V> Tenant<K, V> {
    /// Whether a read takes long already: reconciles do not wait for this tenant then.
    fn is_slow(&self, limits: &Limits) -> bool {
        let mut running = self.running.values();
        running.any(|read| read.since.elapsed() >= limits.wait)
    }

    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.failed.is_empty() && self.queue.is_empty()
    }

    fn remember(&mut self, read: u64, error: Error) {
        if self.failed.len() >= MOST_ERRORS {
            let oldest = self.failed.iter().min_by_key(|(_, failed)| failed.at);
            if let Some(oldest) = oldest.map(|(read, _)| *read) {
                self.failed.remove(&oldest);
            }
        }
        let at = Instant::now();
        self.failed.insert(read, Failed { error, at });
    }

    /// Removes the places that no reconcile requests any more.
    fn leave_queue(&mut self) {
        self.queue
            .retain(|place| place.requested.elapsed() < PLACE_KEPT);
    }

    /// Whether a read may start: those that have waited longer are first. Otherwise, since when it waits.
    fn take_turn(&mut self, read: u64) -> Result<(), Instant> {
        self.leave_queue();
        let place = self.queue.iter().position(|place| place.read == read);
        let ahead = place.unwrap_or(self.queue.len());
        if self.running.len() + ahead < RUNNING_AT_ONCE {
            if let Some(place) = place {
                self.queue.remove(place);
            }
            return Ok(());
        }
        let now = Instant::now();
        if let Some(place) = place {
            let place = &mut self.queue[place];
            place.requested = now;
            return Err(place.since);
        }
        if self.queue.len() < LONGEST_QUEUE {
            self.queue.push(Place {
                read,
                since: now,
                requested: now,
            });
        }
        Err(now)
    }
}

// === impl Ending ===

impl<K: Clone + Eq + Hash, V> Drop for Ending<K, V> {
    fn drop(&mut self) {
        // The flight is dropped after the lock is released: its future may own the last reference to other flights.
        let running = unpoisoned(&self.table).end(&self.question, self.failed.take());
        drop(running);
    }
}

#[cfg(test)]
mod tests;
