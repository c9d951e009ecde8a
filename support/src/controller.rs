//! The controller runner: all reconcile loops run here, controllers with [`Manager::run`], other loops with
//! [`Manager::pass`].
//!
//! ```text
//! requests ──> queue ──> reconciles, at most `concurrency` ──> requeue, or backoff
//!                ^        │ span, deadline, watchdog, metrics, Event on error
//!                └────────┘ an object that changes while its reconcile runs
//! ```
//!
//! An object has one reconcile at a time. Requests that come while it waits or runs lead to one more. A reconcile that
//! fails, or exceeds its deadline, is retried with backoff. When the drain begins, no reconcile starts any more, and
//! those in flight are completed. When the runner is dropped, so are its reconciles.
//!
//! Reading, validating, building, applying and status are steps of the [`Reconciler`].

mod key;
mod metrics;
mod queue;
mod wake;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};
use prometheus_client::registry::Registry;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, error_span};

use crate::error::chain;
use crate::health::Health;
use crate::reconcile::{Backoff, Report, Retry};
use crate::shutdown::Drain;
use crate::watchdog::{HANG_LIMIT, Watchdog};
pub use key::ObjectKey;
use metrics::Metrics;
use queue::Queue;
pub use wake::Wake;

/// The deadline of a reconcile. Requests end long before; liveness fails a while after.
pub const DEADLINE: Duration = Duration::from_mins(8);
/// Longest note of an Event, in characters.
const NOTE: usize = 1000;

/// What a reconciler is, and how often it runs.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Name in metrics and logs, in lower case.
    pub controller: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// Objects that are reconciled at the same time.
    pub concurrency: usize,
    /// Time from a request to its reconcile: requests seldom come alone.
    pub debounce: Duration,
    /// Time after which a reconcile is aborted.
    pub deadline: Duration,
}

/// When to reconcile an object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action(Option<Duration>);

/// Reconciles objects.
pub trait Reconciler {
    /// Why a reconcile failed.
    type Error: Report;

    /// Reconciles an object, which may not exist any more.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Action, Self::Error>>;

    /// A reconcile has failed: for status conditions and other reports.
    fn failed(&self, key: &ObjectKey, failure: &Failure<Self::Error>) -> impl Future<Output = ()> {
        let _ = (key, failure);
        std::future::ready(())
    }

    /// Where Events about an object go.
    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let _ = key;
        None
    }
}

/// Why a reconcile did not succeed.
#[derive(Debug)]
pub enum Failure<E> {
    /// A step failed.
    Error(E),
    /// It did not end before its deadline, and was aborted.
    Deadline(Duration),
}

/// What all controllers of a process share.
#[derive(Debug, Clone)]
pub struct Manager {
    metrics: Metrics,
    watchdog: Arc<Watchdog>,
}

/// Failures of an object in a row.
#[derive(Debug, Default)]
struct Failing {
    backoff: Backoff,
    last: String,
}

/// A reconcile that has ended.
struct Done<E> {
    key: ObjectKey,
    span: Span,
    result: Result<Action, Failure<E>>,
}

struct Runner<'a, R> {
    manager: &'a Manager,
    settings: Settings,
    reconciler: &'a R,
    failing: HashMap<ObjectKey, Failing>,
}

// === impl Action ===

impl Action {
    /// Reconciles the object again after this time, or when it changes.
    pub fn requeue(after: Duration) -> Self {
        Self(Some(after))
    }

    /// Reconciles the object again when it changes.
    pub fn await_change() -> Self {
        Self(None)
    }

    /// The time after which the object is reconciled without a change.
    pub fn requeue_after(self) -> Option<Duration> {
        self.0
    }
}

// === impl Failure ===

impl<E: Report> Failure<E> {
    /// The reason in metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Error(error) => error.reason(),
            Self::Deadline(_) => "DeadlineExceeded",
        }
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Error(error) => error.retry(),
            Self::Deadline(_) => Retry::Backoff,
        }
    }
}

impl<E: Report> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&chain(error)),
            Self::Deadline(limit) => {
                write!(
                    f,
                    "reconcile aborted after its deadline of {}s",
                    limit.as_secs()
                )
            }
        }
    }
}

/// Adds the generation of the object to the span of its reconcile.
pub fn record_generation(generation: Option<i64>) {
    if let Some(generation) = generation {
        Span::current().record("generation", generation);
    }
}

// === impl Manager ===

impl Manager {
    /// The metrics are in the registry; a reconcile that hangs fails the liveness of this health.
    pub fn new(registry: &mut Registry, health: &Health) -> Self {
        Self {
            metrics: Metrics::new(registry),
            watchdog: Arc::clone(health.watchdog()),
        }
    }

    /// Reconciles the objects of the requests until the drain has begun and all reconciles have ended. None starts before
    /// `ready` completes: a reconciler that reads from a cache waits there for its first list.
    pub async fn run<R: Reconciler>(
        &self,
        settings: Settings,
        reconciler: &R,
        requests: impl Stream<Item = ObjectKey>,
        ready: impl Future<Output = ()>,
        mut drain: Drain,
    ) {
        let mut runner = Runner {
            manager: self,
            settings,
            reconciler,
            failing: HashMap::new(),
        };
        let mut queue = Queue::new(settings.debounce, settings.concurrency);
        let mut running = FuturesUnordered::new();
        let mut requests = std::pin::pin!(requests.fuse());
        let mut ready = std::pin::pin!(ready.fuse());
        let mut is_ready = false;
        loop {
            while is_ready && let Some(key) = queue.pop(Instant::now()) {
                running.push(runner.pass(key));
            }
            self.metrics.queue_depth(settings.controller, queue.len());
            let due = queue.next_due().filter(|_| is_ready);
            tokio::select! {
                biased;
                () = drain.begun() => break,
                Some(done) = running.next() => {
                    let (key, requeue_after) = runner.finish(done).await;
                    queue.finish(key, requeue_after, Instant::now());
                }
                () = &mut ready, if !is_ready => is_ready = true,
                Some(key) = requests.next() => queue.add(key, Instant::now()),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
        while running.next().await.is_some() {}
    }

    /// One pass of a loop that is not a controller, with the span, deadline, watchdog and metrics of a reconcile.
    ///
    /// One that exceeds its deadline is aborted and logged, and its failure is returned like that of the pass itself: when
    /// the next one begins is up to the loop.
    pub async fn pass<T, E: Report>(
        &self,
        controller: &'static str,
        deadline: Duration,
        pass: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure<E>> {
        let pass = async {
            let result = self.supervise(controller, None, deadline, pass).await;
            // The loop logs its own errors; it cannot log this one in the span of the pass.
            if let Err(failure @ Failure::Deadline(_)) = &result {
                tracing::warn!(error = %failure, "Failed to reconcile");
            }
            result
        };
        pass.instrument(span(controller)).await
    }

    /// Runs a reconcile of an object, or a pass of a loop without one, with deadline, watchdog and metrics.
    async fn supervise<T, E: Report>(
        &self,
        controller: &'static str,
        object: Option<&str>,
        deadline: Duration,
        reconcile: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Failure<E>> {
        let limit = deadline + HANG_LIMIT.saturating_sub(DEADLINE);
        let _running = self.watchdog.begin(controller, object, limit);
        tracing::debug!("Reconciling");
        let begun = Instant::now();
        let result = match timeout(deadline, reconcile).await {
            Ok(result) => result.map_err(Failure::Error),
            Err(_) => Err(Failure::Deadline(deadline)),
        };
        let reason = result.as_ref().err().map(Failure::reason);
        self.metrics.reconciled(controller, begun.elapsed(), reason);
        if reason.is_none() {
            tracing::debug!("Reconciled");
        }
        result
    }
}

// === impl Runner ===

impl<'a, R: Reconciler> Runner<'a, R> {
    /// One reconcile, with its span, deadline, watchdog and metrics.
    fn pass(&self, key: ObjectKey) -> impl Future<Output = Done<R::Error>> + use<'a, R> {
        let (manager, settings, reconciler) = (self.manager, self.settings, self.reconciler);
        // At the level of errors: a filter that passes an event passes the fields of its span.
        let span = error_span!(
            "reconcile",
            controller = settings.controller,
            kind = settings.kind,
            namespace = key.namespace,
            // Not `name`: that is the name of the span in JSON.
            object_name = key.name,
            generation = Empty,
            reconcile_id = %reconcile_id(),
        );
        let pass = async move {
            let Settings {
                controller,
                deadline,
                ..
            } = settings;
            let reconcile = reconciler.reconcile(&key);
            let object = key.to_string();
            let result = manager
                .supervise(controller, Some(&object), deadline, reconcile)
                .await;
            (key, result)
        };
        let of_done = span.clone();
        pass.instrument(span).map(|(key, result)| Done {
            key,
            span: of_done,
            result,
        })
    }

    /// The object, and when it is reconciled without a change.
    async fn finish(&mut self, done: Done<R::Error>) -> (ObjectKey, Option<Duration>) {
        let Done { key, span, result } = done;
        match result {
            Ok(action) => {
                self.failing.remove(&key);
                (key, action.requeue_after())
            }
            Err(failure) => {
                let pause = self.handle_failure(&key, &failure).instrument(span).await;
                (key, Some(pause))
            }
        }
    }

    async fn handle_failure(&mut self, key: &ObjectKey, failure: &Failure<R::Error>) -> Duration {
        let failing = self.failing.entry(key.clone()).or_default();
        let pause = failing.backoff.pause(failure.retry());
        match failure.retry() {
            Retry::AtOnce => tracing::debug!(error = %failure, "Retrying after a conflict"),
            Retry::Backoff => {
                let error = failure.to_string();
                failing.log(&error);
                if let Some((recorder, object)) = self.reconciler.events(key) {
                    publish(recorder, object, &error);
                }
                failing.last = error;
            }
        }
        self.reconciler.failed(key, failure).await;
        pause
    }
}

// === impl Failing ===

impl Failing {
    /// A warning for each new failure; one that repeats is a detail.
    fn log(&self, error: &str) {
        if self.last == error {
            tracing::debug!(error, "Failed to reconcile again");
        } else {
            tracing::warn!(error, "Failed to reconcile");
        }
    }
}

/// Sends an Event. Its own failure changes nothing.
fn publish(recorder: Recorder, object: ObjectReference, error: &str) {
    let event = Event {
        type_: EventType::Warning,
        reason: "ReconcileError".to_owned(),
        note: Some(error.chars().take(NOTE).collect()),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    tokio::spawn(async move { recorder.publish(&event, &object).await });
}

/// The root span of work of a loop that is not a controller. A pass of such a loop runs with [`Manager::pass`]; only work
/// that may take hours, and so has no deadline, has just this span.
pub fn span(controller: &'static str) -> Span {
    error_span!("reconcile", controller, reconcile_id = %reconcile_id())
}

/// A random ID that all log lines of a reconcile share.
fn reconcile_id() -> String {
    // Each state has keys of its own.
    format!("{:016x}", RandomState::new().hash_one(()))
}

#[cfg(test)]
mod tests;
