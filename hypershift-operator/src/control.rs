//! Watches HostedClusters and what belongs to them, and reconciles those that have changed, or have drifted.

mod related;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Api;
use kube::runtime::controller::{self, ReconcileRequest, applier, trigger_self};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt, watcher};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _};
use support::shutdown::Drain;
use support::watch::is_blind;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{self, Id, Meta, resource};
use crate::watches;

/// Hosted clusters that are dealt with at once. One never waits for another of them.
const AT_ONCE: u16 = 8;

/// A cluster's objects change together: they are looked at once.
const SETTLE: Duration = Duration::from_millis(100);

type Request = Result<ReconcileRequest<Meta>, watcher::Error>;

/// Reconciles until the process is to end; what is under way then is finished.
pub(crate) async fn run(
    ctx: Arc<Context>,
    drifted: mpsc::Receiver<Id>,
    check: &Check,
    mut drain: Drain,
) {
    let writer = Writer::new(resource());
    let store = writer.as_reader();
    let watched = watch(ctx.client.clone(), writer, check);
    let related = related::watch(&ctx.client, ctx.scope);
    let requests = stream::select_all([watched.boxed(), related.boxed(), again(drifted).boxed()]);
    let requests = requests.take_until(async move { drain.begun().await });
    work(ctx, store, requests, check).await;
}

async fn work(
    ctx: Arc<Context>,
    store: Store<Meta>,
    requests: impl Stream<Item = Request>,
    check: &Check,
) {
    let metrics = Arc::clone(&ctx.metrics);
    let config = controller::Config::default()
        .concurrency(AT_ONCE)
        .debounce(SETTLE);
    let done = applier(
        |found, ctx| hosted_cluster::reconcile(found, ctx).boxed(),
        |found, error, ctx| hosted_cluster::retry(&found, error, &ctx),
        ctx,
        store,
        requests,
        config,
    );
    let mut done = std::pin::pin!(done);
    while let Some(done) = done.next().await {
        if let Err(controller::Error::QueueError(error)) = done {
            let is_blind = is_blind(&error);
            let error = Error::Watch(error);
            metrics.error(error.step(), error.reason());
            let problem = chain(&error);
            tracing::debug!(problem, "Watch failed");
            if is_blind {
                check.fail(problem);
            }
        }
    }
}

/// The clusters whose owner may have changed.
fn watch(client: kube::Client, writer: Writer<Meta>, check: &Check) -> impl Stream<Item = Request> {
    let api: Api<Meta> = Api::all_with(client, &resource());
    let events = watcher(api, watches::config())
        .backoff(Backoff::default())
        .modify(|found| found.metadata.managed_fields = None)
        .reflect(writer)
        .inspect(|event| {
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects()
        .predicate_filter(|found: &Meta| Some(wish(found)), PredicateConfig::default());
    trigger_self(events, resource())
}

/// What is wished for, and by whom. A status that changes every second wakes nobody.
fn wish(found: &Meta) -> u64 {
    let mut hasher = DefaultHasher::new();
    let metadata = &found.metadata;
    metadata.uid.hash(&mut hasher);
    metadata.generation.hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    metadata.annotations.hash(&mut hasher);
    metadata.labels.hash(&mut hasher);
    metadata.finalizers.hash(&mut hasher);
    hasher.finish()
}

/// The clusters that have drifted.
fn again(drifted: mpsc::Receiver<Id>) -> impl Stream<Item = Request> {
    let ids = stream::unfold(drifted, |mut drifted| async {
        let id = drifted.recv().await?;
        Some((id, drifted))
    });
    ids.map(|id| {
        let reference = ObjectRef::new_with(&id.name, resource()).within(&id.namespace);
        Ok(reference.into())
    })
}
