//! The HostedCluster controller: watches HostedClusters and the objects that belong to them, and requests a reconcile
//! when one changes or when the periodic resync has found a changed owner.

mod related;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{PredicateConfig, WatchStreamExt as _, watcher};
use kube::{Api, Resource as _};
use support::controller::{
    Action, DEADLINE, Failure, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Report as _, Retry};
use support::shutdown::Drain;
use support::watch::watch_failed;
use tokio::sync::mpsc;

use crate::cache::{self, ClusterWriters};
use crate::cluster_ref::{Id, resource};
use crate::context::Context;
use crate::error::{Error, step};
use crate::hosted_cluster;
use crate::metrics::Metrics;
use crate::watches::{self, Lenient};

/// How HostedClusters are reconciled.
const SETTINGS: Settings = Settings {
    controller: "hostedcluster",
    kind: "HostedCluster",
    concurrency: 8,
    // The objects of a cluster change together.
    debounce: Duration::from_millis(100),
    deadline: DEADLINE,
};

/// Reconciles HostedClusters.
struct Controller {
    ctx: Arc<Context>,
    store: Store<DynamicObject>,
}

/// Reconciles until the shutdown begins. Reconciles in flight are completed.
pub(crate) async fn run(
    ctx: Arc<Context>,
    requeued: mpsc::UnboundedReceiver<Id>,
    writers: ClusterWriters,
    check: &Check,
    drain: Drain,
) {
    let store = ctx.cache.stores.clusters.clone();
    let watched = watch(&ctx, writers.objects, check);
    let related = related::watch(&ctx, writers.namespaces);
    let touched = requested(writers.touched, |key| key);
    let again = requested(requeued, |id| cache::key(&id));
    let requests = [
        watched.boxed(),
        related.boxed(),
        touched.boxed(),
        again.boxed(),
    ];
    let requests = stream::select_all(requests);
    let synced = Arc::clone(&ctx.cache);
    let ready = async {
        // It fails only when the watch has ended, which ends this term of leadership, too.
        let _ = store.wait_until_ready().await;
        synced.until_synced().await;
    };
    let controller = Controller {
        ctx: Arc::clone(&ctx),
        store: store.clone(),
    };
    ctx.controllers
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = cache::get(&self.store, resource(), key) else {
            self.ctx.cache.clusters.forget(key);
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        let id = Id::of(&found.metadata);
        hosted_cluster::reconcile(id, Arc::clone(&self.ctx)).await
    }

    async fn failed(&self, key: &ObjectKey, failure: &Failure<Error>) {
        self.ctx.metrics.error(step(failure), failure.reason());
        if failure.retry() == Retry::Backoff {
            self.ctx.observed_groups.invalidate();
        }
        let id = Id {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        self.ctx.cluster_states.record_failure(id, failure.retry());
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = cache::get(&self.store, resource(), key)?;
        let object = found.object_ref(&resource());
        Some((self.ctx.recorder.clone(), object))
    }
}

/// The HostedClusters whose desired state or owner may have changed.
fn watch<'a>(
    ctx: &Arc<Context>,
    writer: Writer<DynamicObject>,
    check: &'a Check,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let api: Api<Lenient<DynamicObject>> = Api::all_with(ctx.client.clone(), &resource());
    let metrics = Arc::clone(&ctx.metrics);
    let ctx = Arc::clone(ctx);
    let events = watches::watch(api, watches::checked(watches::whole()));
    let events = watches::readable(events)
        .modify(cache::trim_cluster)
        .reflect(writer)
        .inspect(move |event| {
            ctx.cache.see_cluster(event);
            ctx.cache.notify_changed();
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects()
        .predicate_filter(
            |found: &DynamicObject| Some(desired_state_hash(found)),
            PredicateConfig::default(),
        );
    events.filter_map(move |event| {
        let key = event.map(|found| ObjectKey::of(&found.metadata));
        let key = key.map_err(|error| failed(error, &metrics, check)).ok();
        std::future::ready(key)
    })
}

fn failed(error: watcher::Error, metrics: &Metrics, check: &Check) {
    let has_failed = watch_failed(&error);
    let error = Error::Watch(error);
    metrics.error(error.step(), error.reason());
    let text = chain(&error);
    tracing::debug!(error = text, "Failed to watch HostedClusters");
    if has_failed {
        check.fail(text);
    }
}

/// A hash of the desired state and the metadata that decides about the owner. Status updates do not change it, so they
/// request no reconcile.
fn desired_state_hash(found: &DynamicObject) -> u64 {
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

/// The HostedClusters for which another part of the operator requests a reconcile.
fn requested<T: Send + 'static>(
    requests: mpsc::UnboundedReceiver<T>,
    key: impl Fn(T) -> ObjectKey + Copy + Send + 'static,
) -> impl Stream<Item = ObjectKey> {
    stream::unfold(requests, move |mut requests| async move {
        let request = requests.recv().await?;
        Some((key(request), requests))
    })
}
