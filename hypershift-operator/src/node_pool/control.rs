//! Watches pools, and all that a pool is decided on: one reconciliation for each that something happened to.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::annotations::node_pool::NODE_POOL;
use api::group::Side;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::reflector::store::Writer as StoreWriter;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use ownership::Scope;
use serde::de::DeserializeOwned;
use serde_json::json;
use support::controller::{
    Action, DEADLINE, Failure, Manager, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _, Retry, is_missing};
use support::shutdown::Drain;
use support::watch::watch_failed;

use super::error::Error;
use super::unreadable::{cluster_name, owner, resource};
use super::write::Writer;
use crate::capi::Capi;
use crate::context::Context;
use crate::watches;

/// How NodePools are reconciled.
const SETTINGS: Settings = Settings {
    controller: "nodepool",
    kind: "NodePool",
    concurrency: 8,
    debounce: Duration::ZERO,
    deadline: DEADLINE,
};

type Meta<K> = PartialObjectMeta<K>;
/// A pool as it is watched: untyped, so that one that does not deserialize fails no other.
type Pool = DynamicObject;
type Requests = BoxStream<'static, ObjectKey>;

/// What all pools have in common.
pub(super) struct Pools {
    pub(super) ctx: Arc<Context>,
    pub(super) writer: Writer,
    failing: Mutex<HashMap<ObjectKey, Failing>>,
}

/// How often a kind that is not served is waited for, about a minute, before a Warning Event says so.
const INSTALLING: u32 = 8;

/// What is remembered of a pool that could not be reconciled.
#[derive(Debug, Default)]
struct Failing {
    backoff: Backoff,
    /// Failures in a row that a kind which is not served caused.
    unserved: u32,
}

// === impl Failing ===

impl Failing {
    /// The pause before a kind that is being installed is asked for again; nothing once that takes too long.
    fn wait(&mut self, error: &Error) -> Option<Duration> {
        if !error.is_unserved() {
            self.unserved = 0;
            return None;
        }
        self.unserved = self.unserved.saturating_add(1);
        (self.unserved <= INSTALLING).then(|| self.backoff.pause(error.retry()))
    }
}

/// Reconciles NodePools.
struct Controller {
    pools: Arc<Pools>,
    store: Store<Pool>,
}

/// Reconciles until the shutdown begins; passes that run then are completed.
pub(crate) async fn run(ctx: Arc<Context>, manager: &Manager, check: &Check, drain: Drain) {
    let client = ctx.client.clone();
    let writer = StoreWriter::new(resource());
    let store = writer.as_reader();
    let mut requests: Vec<BoxStream<'_, ObjectKey>> = vec![watch(&client, writer, check).boxed()];
    requests.extend(others(&client, &store, ctx.scope));
    let ready = async {
        // It fails only when the watch has ended, and this term with it.
        let _ = store.wait_until_ready().await;
    };
    let pools = Arc::new(Pools {
        writer: Writer::new(client),
        failing: Mutex::default(),
        ctx,
    });
    let controller = Controller {
        pools,
        store: store.clone(),
    };
    let requests = stream::select_all(requests);
    manager
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

/// The pools themselves.
fn watch<'a>(
    client: &kube::Client,
    writer: StoreWriter<Pool>,
    check: &'a Check,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let api: Api<Pool> = Api::all_with(client.clone(), &resource());
    let events = watcher(api, watches::config())
        .backoff(Backoff::default())
        .modify(slim)
        .reflect(writer)
        .inspect(|event| {
            if event.is_ok() {
                check.pass();
            }
        })
        .touched_objects();
    events.filter_map(move |event| {
        let key = match event {
            Ok(pool) => Some(ObjectKey::of(&pool.metadata)),
            Err(error) => {
                failed(&error, check);
                None
            }
        };
        std::future::ready(key)
    })
}

fn failed(error: &watcher::Error, check: &Check) {
    tracing::debug!(error = chain(error), "Failed to watch NodePools");
    if is_absent(error) {
        check.pass();
    } else if watch_failed(error) {
        check.fail(chain(error));
    }
}

/// Where the kind is not, there is no pool to reconcile.
fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_missing(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Everything but pools. A watch that fails is begun anew, and fails nothing else: the kinds of one side may be absent.
fn others(client: &kube::Client, pools: &Store<Pool>, scope: Scope) -> Vec<Requests> {
    let clusters: Api<Meta<HostedCluster>> = Api::all(client.clone());
    let maps: Api<Meta<ConfigMap>> = Api::all(client.clone());
    let secrets: Api<Meta<Secret>> = Api::all(client.clone());
    let (of_cluster, of_map) = (pools.clone(), pools.clone());
    let mut requests = vec![
        watched(clusters, move |it| of_clusters(&it.metadata, &of_cluster)),
        watched(maps, move |it| of_maps(&it.metadata, &of_map)),
        watched(secrets, |it| annotated(&it.metadata)),
    ];
    for kind in scope.sides().iter().copied().flat_map(kinds) {
        let api: Api<Meta<DynamicObject>> = Api::all_with(client.clone(), &kind);
        requests.push(watched(api, |it| annotated(&it.metadata)));
    }
    requests
}

fn kinds(side: Side) -> [ApiResource; 4] {
    let capi = Capi::new(side);
    [
        capi.machine_deployment(),
        capi.machine_set(),
        capi.machine(),
        capi.machine_health_check(),
    ]
}

/// The pools that something happened to, seen by metadata: no more of it is read or kept.
fn watched<K>(
    api: Api<Meta<K>>,
    pools: impl Fn(&Meta<K>) -> Vec<ObjectKey> + Send + 'static,
) -> Requests
where
    K: Clone + Debug + DeserializeOwned + Send + 'static,
    Meta<K>: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, watches::config())
        .backoff(Backoff::default())
        .touched_objects()
        .flat_map(move |event| {
            let pools = event.map(|it| pools(&it)).unwrap_or_default();
            stream::iter(pools)
        })
        .boxed()
}

fn annotated(found: &ObjectMeta) -> Vec<ObjectKey> {
    let reference = found
        .annotations
        .as_ref()
        .and_then(|it| it.get(NODE_POOL.key()));
    let pool = reference.and_then(|it| it.split_once('/'));
    pool.map(|(namespace, name)| ObjectKey::new(namespace, name))
        .into_iter()
        .collect()
}

fn of_clusters(found: &ObjectMeta, pools: &Store<Pool>) -> Vec<ObjectKey> {
    let name = found.name.as_deref().unwrap_or_default();
    of(pools, |pool| {
        pool.metadata.namespace == found.namespace && cluster_name(pool) == name
    })
}

/// ConfigMaps that pools name, and all of the control plane's that bear one of our labels.
fn of_maps(found: &ObjectMeta, pools: &Store<Pool>) -> Vec<ObjectKey> {
    let namespace = found.namespace.as_deref().unwrap_or_default();
    let name = found.name.as_deref().unwrap_or_default();
    let mut labels = found.labels.iter().flatten();
    let is_put_forward = labels.any(|(key, _)| key.starts_with("hypershift.openshift.io/"));
    of(pools, |pool| {
        let home = pool.metadata.namespace.as_deref().unwrap_or_default();
        let mut config = pool.data["spec"]["config"].as_array().into_iter().flatten();
        let is_named = home == namespace && config.any(|it| it["name"] == name);
        is_named || is_put_forward && owner(pool).control_plane_namespace() == namespace
    })
}

fn of(pools: &Store<Pool>, is_meant: impl Fn(&Pool) -> bool) -> Vec<ObjectKey> {
    let pools = pools.state();
    let meant = pools.iter().filter(|pool| is_meant(pool));
    meant.map(|pool| ObjectKey::of(&pool.metadata)).collect()
}

/// What is not looked at is not kept.
fn slim(pool: &mut Pool) {
    pool.metadata.managed_fields = None;
    let spec = &pool.data["spec"];
    let kept = json!({ "clusterName": spec["clusterName"], "config": spec["config"] });
    pool.data = json!({ "spec": kept });
}

// === impl Controller ===

impl Controller {
    fn get(&self, key: &ObjectKey) -> Option<Arc<Pool>> {
        let reference = ObjectRef::new_with(&key.name, resource()).within(&key.namespace);
        self.store.get(&reference)
    }
}

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = self.get(key) else {
            self.pools.forget_failures(key);
            return Ok(Action::await_change());
        };
        record_generation(found.metadata.generation);
        match super::reconcile(found, Arc::clone(&self.pools)).await {
            Ok(action) => {
                self.pools.forget_failures(key);
                Ok(action)
            }
            Err(error) => {
                let pause = self.pools.wait(key, &error).ok_or(error)?;
                Ok(Action::requeue(pause))
            }
        }
    }

    async fn failed(&self, _: &ObjectKey, failure: &Failure<Error>) {
        let ctx = &self.pools.ctx;
        let step = match failure {
            Failure::Error(error) => error.step(),
            Failure::Deadline(_) => "reconcile",
        };
        ctx.metrics.error(step, failure.reason());
        if failure.retry() == Retry::Backoff {
            ctx.evidence.invalidate();
        }
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let object = self.get(key)?.object_ref(&resource());
        Some((self.pools.ctx.recorder.clone(), object))
    }
}

// === impl Pools ===

impl Pools {
    fn forget_failures(&self, pool: &ObjectKey) {
        self.failing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(pool);
    }

    /// The pause before the next attempt, where the error is that of an installation which is not complete yet.
    fn wait(&self, pool: &ObjectKey, error: &Error) -> Option<Duration> {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = failing.entry(pool.clone()).or_default().wait(error)?;
        let (namespace, name) = (&pool.namespace, &pool.name);
        let error = chain(error);
        tracing::debug!(namespace, name, error, "Waiting for a kind to be served");
        Some(pause)
    }

    /// Sends a Warning Event. Whether it arrives changes nothing.
    pub(super) fn warn(&self, pool: &Pool, reason: &str, note: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(note.chars().take(1000).collect()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let (recorder, regarding) = (self.ctx.recorder.clone(), pool.object_ref(&resource()));
        tokio::spawn(async move { recorder.publish(&event, &regarding).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check T04: what a pool is found by is kept of every pool, whatever else is in it.
    #[test]
    fn pools_that_do_not_deserialize_are_watched() {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers", "managedFields": [] },
            "spec": {
                "clusterName": "dev",
                "config": [{ "name": "sysctl" }],
                "replicas": 1_u64 << 31,
                "arch": "unknown",
            },
            "status": { "replicas": "none" },
        });
        let mut pool: Pool = serde_json::from_value(pool).unwrap();
        slim(&mut pool);
        let kept = json!({ "spec": { "clusterName": "dev", "config": [{ "name": "sysctl" }] } });
        assert_eq!(pool.data, kept);
        let mut writer = StoreWriter::new(resource());
        writer.apply_watcher_event(&watcher::Event::Apply(pool));
        let pools = writer.as_reader();
        let meta = |namespace: &str, name: &str| ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        assert_eq!(of_clusters(&meta("clusters", "dev"), &pools).len(), 1);
        assert_eq!(of_clusters(&meta("clusters", "other"), &pools).len(), 0);
        assert_eq!(of_maps(&meta("clusters", "sysctl"), &pools).len(), 1);
        assert_eq!(of_maps(&meta("clusters", "other"), &pools).len(), 0);
    }

    /// Check F03: while types and permissions are being installed, nothing is reported as an error.
    #[test]
    fn kinds_that_are_being_installed_are_waited_for() {
        let error = |code: u16| {
            let status = kube::core::Status::failure("", "").with_code(code);
            Error::read("machinedeployments")(kube::Error::Api(Box::new(status)))
        };
        let mut failing = Failing::default();
        for attempt in 0..INSTALLING {
            let code = if attempt % 2 == 0 { 403 } else { 404 };
            assert!(failing.wait(&error(code)).is_some(), "{attempt}");
        }
        assert_eq!(failing.wait(&error(403)), None, "it takes too long");
        assert_eq!(failing.wait(&error(500)), None, "another error");
        assert!(failing.wait(&error(404)).is_some(), "it is another failure");
    }
}
