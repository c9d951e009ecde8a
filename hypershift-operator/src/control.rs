//! Watches HostedClusters and what belongs to them, and reconciles those that have changed, or have drifted.

mod related;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ObjectReference;
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

use crate::context::Context;
use crate::error::Error;
use crate::hosted_cluster::{self, Id, Meta, resource};
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
    store: Store<Meta>,
}

/// Reconciles until the shutdown begins; passes that run then are completed.
pub(crate) async fn run(
    ctx: Arc<Context>,
    manager: &Manager,
    drifted: mpsc::Receiver<Id>,
    check: &Check,
    drain: Drain,
) {
    let writer = Writer::new(resource());
    let store = writer.as_reader();
    let watched = watch(&ctx, writer, check);
    let related = related::watch(&ctx.client, ctx.scope);
    let requests = stream::select_all([watched.boxed(), related.boxed(), again(drifted).boxed()]);
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
    fn get(&self, key: &ObjectKey) -> Option<Arc<Meta>> {
        let reference = ObjectRef::new_with(&key.name, resource()).within(&key.namespace);
        self.store.get(&reference)
    }
}

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = self.get(key) else {
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        hosted_cluster::reconcile(found, Arc::clone(&self.ctx)).await
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
    writer: Writer<Meta>,
    check: &'a Check,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let api: Api<Meta> = Api::all_with(ctx.client.clone(), &resource());
    let metrics = Arc::clone(&ctx.metrics);
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

/// The clusters whose owner may have changed without an event.
fn again(drifted: mpsc::Receiver<Id>) -> impl Stream<Item = ObjectKey> {
    stream::unfold(drifted, |mut drifted| async {
        let id = drifted.recv().await?;
        Some((ObjectKey::new(id.namespace, id.name), drifted))
    })
}
