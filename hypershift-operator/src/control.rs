//! Watches HostedClusters and what belongs to them, and reconciles those that have changed, or have drifted.

mod related;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::events::Recorder;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{PredicateConfig, WatchStreamExt as _, watcher};
use kube::{Api, Resource as _};
use support::controller::{
    Action, DEADLINE, Failure, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _, Retry};
use support::shutdown::Drain;
use support::watch::watch_failed;
use tokio::sync::mpsc;

use crate::cache::{self, ClusterWriters};
use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{self, Id, resource};
use crate::metrics::Metrics;
use crate::watches;

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

/// Reconciles until the shutdown begins; passes that run then are completed.
pub(crate) async fn run(
    ctx: Arc<Context>,
    manager: &Manager,
    drifted: mpsc::UnboundedReceiver<Id>,
    writers: ClusterWriters,
    check: &Check,
    drain: Drain,
) {
    let store = ctx.cache.stores.clusters.clone();
    let watched = watch(&ctx, writers.objects, check);
    let related = related::watch(&ctx, writers.namespaces);
    let touched = requested(writers.touched, |key| key);
    let again = requested(drifted, |id| cache::key(&id));
    let requests = [
        watched.boxed(),
        related.boxed(),
        touched.boxed(),
        again.boxed(),
    ];
    let requests = stream::select_all(requests);
    let ready = async {
        // It fails only when the watch has ended, and this term with it.
        let _ = store.wait_until_ready().await;
    };
    let controller = Controller {
        ctx: Arc::clone(&ctx),
        store: store.clone(),
    };
    manager
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

// === impl Controller ===

impl Controller {
    fn get(&self, key: &ObjectKey) -> Option<Arc<DynamicObject>> {
        let reference = ObjectRef::new_with(&key.name, resource()).within(&key.namespace);
        self.store.get(&reference)
    }
}

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = self.get(key) else {
            self.ctx.cache.clusters.forget(key);
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        let id = Id::of(&found.metadata);
        hosted_cluster::reconcile(id, Arc::clone(&self.ctx)).await
    }

    async fn failed(&self, key: &ObjectKey, failure: &Failure<Error>) {
        let step = match failure {
            Failure::Error(error) => error.step(),
            Failure::Deadline(_) => "reconcile",
        };
        self.ctx.metrics.error(step, failure.reason());
        if failure.retry() == Retry::Backoff {
            self.ctx.evidence.invalidate();
        }
        let id = Id {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        };
        self.ctx.fleet.failed(id, failure.retry());
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let object = self.get(key)?.object_ref(&resource());
        Some((self.ctx.recorder.clone(), object))
    }
}

/// The clusters whose owner may have changed.
fn watch<'a>(
    ctx: &Arc<Context>,
    writer: Writer<DynamicObject>,
    check: &'a Check,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let api: Api<DynamicObject> = Api::all_with(ctx.client.clone(), &resource());
    let metrics = Arc::clone(&ctx.metrics);
    let ctx = Arc::clone(ctx);
    let events = watcher(api, watches::whole())
        .backoff(Backoff::default())
        .modify(cache::slim_cluster)
        .reflect(writer)
        .inspect(move |event| {
            ctx.cache.index.observe(cache::HOSTED_CLUSTERS, event);
            if event.is_ok() {
                ctx.cache.has_changed();
                check.pass();
            }
        })
        .touched_objects()
        .predicate_filter(
            |found: &DynamicObject| Some(wish(found)),
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

/// What is wished for, and by whom. A status that changes every second wakes nobody.
fn wish(found: &DynamicObject) -> u64 {
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

/// The clusters that another part of the operator asks a pass for.
fn requested<T: Send + 'static>(
    requests: mpsc::UnboundedReceiver<T>,
    key: impl Fn(T) -> ObjectKey + Copy + Send + 'static,
) -> impl Stream<Item = ObjectKey> {
    stream::unfold(requests, move |mut requests| async move {
        let request = requests.recv().await?;
        Some((key(request), requests))
    })
}
