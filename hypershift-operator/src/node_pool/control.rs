//! The NodePool controller: watches NodePools and the objects that they depend on, and requests a reconcile of each
//! NodePool that a change affects.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::hypershift::v1beta1::platform::PlatformType;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer as StoreWriter;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use support::controller::{
    Action, DEADLINE, Failure, ObjectKey, Reconciler, Settings, record_generation,
};
use support::error::chain;
use support::health::Check;
use support::reconcile::{Backoff, Report as _, Retry, is_missing};
use support::shutdown::Drain;
use support::watch::watch_failed;
use tokio::sync::mpsc::UnboundedReceiver;

use super::error::Error;
use super::unreadable::{cluster_name, owner, resource};
use super::write::Writer;
use crate::cache::{self, ChangedClusters, PoolWriters};
use crate::context::Context;
use crate::watches::{self, Lenient};

/// How NodePools are reconciled.
const SETTINGS: Settings = Settings {
    controller: "nodepool",
    kind: "NodePool",
    concurrency: 8,
    // The objects of a pool change together.
    debounce: Duration::from_millis(100),
    deadline: DEADLINE,
};

type Meta<K> = PartialObjectMeta<K>;
/// A NodePool as it is watched: untyped, so that one that does not deserialize does not fail the watch of the others.
type Pool = DynamicObject;
type WatchResult<K> = Result<watcher::Event<K>, watcher::Error>;
type Requests = BoxStream<'static, ObjectKey>;

/// What reconciles of all NodePools share.
pub(super) struct Pools {
    pub(super) ctx: Arc<Context>,
    pub(super) writer: Writer,
    failing: Mutex<HashMap<ObjectKey, Failing>>,
}

/// Failures in a row, about a minute, after which a kind that is not served is reported in a Warning Event.
const INSTALLING: u32 = 8;

/// The failures of a NodePool.
#[derive(Debug, Default)]
struct Failing {
    backoff: Backoff,
    /// Failures in a row because a kind is not served.
    unserved: u32,
}

// === impl Failing ===

impl Failing {
    /// The backoff while a kind is being installed; none once that takes too long.
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

/// Reconciles until the shutdown begins. Reconciles in flight are completed.
pub(crate) async fn run(ctx: Arc<Context>, writers: PoolWriters, check: &Check, drain: Drain) {
    let store = ctx.cache.stores.pools.clone();
    let mut requests: Vec<BoxStream<'_, ObjectKey>> =
        vec![watch(&ctx, writers.objects, check).boxed()];
    requests.extend(others(&ctx, &store));
    let touched = stream::unfold(writers.touched, |mut touched| async {
        Some((touched.recv().await?, touched))
    });
    requests.push(touched.boxed());
    requests.push(of_clusters(writers.clusters, store.clone()));
    let synced = Arc::clone(&ctx.cache);
    let ready = async {
        // It fails only when the watch has ended, which ends this term of leadership, too.
        let _ = store.wait_until_ready().await;
        synced.until_synced().await;
    };
    let pools = Arc::new(Pools::new(Arc::clone(&ctx)));
    let controller = Controller {
        pools,
        store: store.clone(),
    };
    let requests = stream::select_all(requests);
    ctx.controllers
        .run(SETTINGS, &controller, requests, ready, drain)
        .await;
}

/// The NodePools that have changed.
fn watch<'a>(
    ctx: &Arc<Context>,
    writer: StoreWriter<Pool>,
    check: &'a Check,
) -> impl Stream<Item = ObjectKey> + use<'a> {
    let api: Api<Lenient<Pool>> = Api::all_with(ctx.client.clone(), &resource());
    let ctx = Arc::clone(ctx);
    let events = watches::watch_optional(api, watches::whole(), ctx.cache.crds());
    let events = watches::readable(events)
        .modify(cache::trim_pool)
        .reflect(writer)
        .inspect(move |event| {
            ctx.cache.see_pool(event);
            if event.is_ok() {
                ctx.cache.notify_changed();
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

/// Whether the kind is not served: then there is no NodePool to reconcile.
fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => is_missing(error),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Watches of the other objects, except those of Cluster API. A failed watch starts again, and does not affect readiness.
///
/// Users' Secrets and ConfigMaps have no label, so all are watched; only the version of each is stored.
fn others(ctx: &Arc<Context>, pools: &Store<Pool>) -> Vec<Requests> {
    let maps: Api<Lenient<Meta<ConfigMap>>> = Api::all(ctx.client.clone());
    let secrets: Api<Lenient<Meta<Secret>>> = Api::all(ctx.client.clone());
    let of_map = pools.clone();
    let (with_map, with_secret) = (Arc::clone(ctx), Arc::clone(ctx));
    let maps = events(maps).inspect(move |event| with_map.cache.see(cache::CONFIG_MAPS, event));
    let secrets =
        events(secrets).inspect(move |event| with_secret.cache.see(cache::SECRETS, event));
    vec![
        requests(maps, move |it| of_maps(&it.metadata, &of_map)),
        // The cache requests the reconcile: Secrets of a NodePool are annotated with it.
        requests(secrets, |_| Vec::new()),
    ]
}

/// The events of a watch of metadata.
fn events<K>(
    api: Api<Lenient<Meta<K>>>,
) -> impl Stream<Item = WatchResult<Meta<K>>> + Send + 'static
where
    K: Clone + Debug + DeserializeOwned + Send + 'static,
    Meta<K>: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watches::readable(watches::watch(api, watches::config()))
}

/// The NodePools that the events affect.
fn requests<K: Send + 'static>(
    event: impl Stream<Item = WatchResult<Meta<K>>> + Send + 'static,
    pools: impl Fn(&Meta<K>) -> Vec<ObjectKey> + Send + 'static,
) -> Requests {
    event
        .touched_objects()
        .flat_map(move |event| {
            let pools = event.map(|it| pools(&it)).unwrap_or_default();
            stream::iter(pools)
        })
        .boxed()
}

/// The NodePools of the changed HostedClusters.
fn of_clusters(clusters: UnboundedReceiver<ChangedClusters>, pools: Store<Pool>) -> Requests {
    let changes = stream::unfold(clusters, |mut clusters| async {
        Some((clusters.recv().await?, clusters))
    });
    let requests = changes.flat_map(move |changed| stream::iter(of_changed(&changed, &pools)));
    requests.boxed()
}

fn of_changed(changed: &ChangedClusters, pools: &Store<Pool>) -> Vec<ObjectKey> {
    of(pools, |pool| match changed {
        ChangedClusters::One(cluster) => {
            pool.metadata.namespace.as_ref() == Some(&cluster.namespace)
                && cluster_name(pool) == cluster.name
        }
        ChangedClusters::All => true,
    })
}

/// The NodePools that reference a ConfigMap, or whose control plane namespace it is in with a label of HyperShift or as the
/// configuration of the cloud provider, which payloads include.
fn of_maps(found: &ObjectMeta, pools: &Store<Pool>) -> Vec<ObjectKey> {
    let namespace = found.namespace.as_deref().unwrap_or_default();
    let name = found.name.as_deref().unwrap_or_default();
    let mut labels = found.labels.iter().flatten();
    let is_put_forward = labels.any(|(key, _)| key.starts_with("hypershift.openshift.io/"))
        || PlatformType::CLOUD_CONFIG_MAPS.contains(&name);
    of(pools, |pool| {
        let home = pool.metadata.namespace.as_deref().unwrap_or_default();
        let fields = ["config", "tuningConfig"].map(|field| pool.data["spec"][field].as_array());
        let mut references = fields.into_iter().flatten().flatten();
        let is_named = home == namespace && references.any(|it| it["name"] == name);
        is_named || is_put_forward && owner(pool).control_plane_namespace() == namespace
    })
}

fn of(pools: &Store<Pool>, is_meant: impl Fn(&Pool) -> bool) -> Vec<ObjectKey> {
    let pools = pools.state();
    let meant = pools.iter().filter(|pool| is_meant(pool));
    meant.map(|pool| ObjectKey::of(&pool.metadata)).collect()
}

// === impl Controller ===

impl Reconciler for Controller {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Action, Error> {
        let Some(found) = cache::get(&self.store, resource(), key) else {
            self.pools.forget_failures(key);
            self.pools.ctx.cache.pools.forget(key);
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
            ctx.observed_groups.invalidate();
        }
    }

    fn events(&self, key: &ObjectKey) -> Option<(Recorder, ObjectReference)> {
        let found = cache::get(&self.store, resource(), key)?;
        let object = found.object_ref(&resource());
        Some((self.pools.ctx.recorder.clone(), object))
    }
}

// === impl Pools ===

impl Pools {
    pub(super) fn new(ctx: Arc<Context>) -> Self {
        Self {
            writer: Writer::new(ctx.client.clone()).with_memory(&ctx.cache),
            failing: Mutex::default(),
            ctx,
        }
    }

    fn forget_failures(&self, pool: &ObjectKey) {
        self.failing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(pool);
    }

    /// The backoff before the next attempt, if the error is that of an installation that is not complete yet.
    fn wait(&self, pool: &ObjectKey, error: &Error) -> Option<Duration> {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = failing.entry(pool.clone()).or_default().wait(error)?;
        let (namespace, name) = (&pool.namespace, &pool.name);
        let error = chain(error);
        tracing::debug!(namespace, name, error, "Waiting for a kind to be served");
        Some(pause)
    }

    /// Sends a Warning Event. Its own failure is ignored.
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
    use serde_json::json;

    use super::*;

    /// Check T04: the fields that lead to a NodePool are kept, whatever its other fields contain.
    #[test]
    fn pools_that_do_not_deserialize_are_watched() {
        let pool = json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "workers", "managedFields": [] },
            "spec": {
                "clusterName": "dev",
                "config": [{ "name": "sysctl" }],
                "tuningConfig": [{ "name": "latency" }],
                "replicas": 1_u64 << 31,
                "arch": "unknown",
            },
            "status": { "replicas": "none" },
        });
        let mut pool: Pool = serde_json::from_value(pool).unwrap();
        cache::trim_pool(&mut pool);
        let kept = json!({
            "clusterName": "dev",
            "config": [{ "name": "sysctl" }],
            "tuningConfig": [{ "name": "latency" }],
        });
        assert_eq!(pool.data["spec"], kept);
        let mut writer = StoreWriter::new(resource());
        writer.apply_watcher_event(&watcher::Event::Apply(pool));
        let pools = writer.as_reader();
        let meta = |namespace: &str, name: &str| ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let of_cluster = |name| {
            let changed = ChangedClusters::One(ObjectKey::new("clusters", name));
            of_changed(&changed, &pools).len()
        };
        assert_eq!(of_cluster("dev"), 1);
        assert_eq!(of_cluster("other"), 0);
        assert_eq!(of_changed(&ChangedClusters::All, &pools).len(), 1);
        assert_eq!(of_maps(&meta("clusters", "sysctl"), &pools).len(), 1);
        assert_eq!(of_maps(&meta("clusters", "latency"), &pools).len(), 1);
        assert_eq!(of_maps(&meta("clusters", "other"), &pools).len(), 0);
    }

    #[test]
    fn changes_of_the_cloud_configuration_request_the_pools_of_the_control_plane() {
        let mut writer = StoreWriter::new(resource());
        for cluster in ["dev", "other"] {
            let pool = json!({
                "apiVersion": "hypershift.openshift.io/v1beta1",
                "kind": "NodePool",
                "metadata": { "namespace": "clusters", "name": format!("{cluster}-workers") },
                "spec": { "clusterName": cluster },
            });
            let mut pool: Pool = serde_json::from_value(pool).unwrap();
            cache::trim_pool(&mut pool);
            writer.apply_watcher_event(&watcher::Event::Apply(pool));
        }
        let pools = writer.as_reader();
        let dev = ObjectKey::new("clusters", "dev-workers");
        for (namespace, name, label, expected) in [
            ("clusters-dev", "azure-cloud-config", None, vec![&dev]),
            ("clusters-dev", "openstack-cloud-config", None, vec![&dev]),
            (
                "clusters-dev",
                "ignition-config-fips",
                Some("hypershift.openshift.io/core-ignition-config"),
                vec![&dev],
            ),
            ("clusters-dev", "aws-cloud-config", None, vec![]),
            ("clusters", "azure-cloud-config", None, vec![]),
            ("clusters-third", "azure-cloud-config", None, vec![]),
        ] {
            let labels = label.map(|key: &str| [(key.to_owned(), "true".to_owned())].into());
            let map = ObjectMeta {
                namespace: Some(namespace.to_owned()),
                name: Some(name.to_owned()),
                labels,
                ..ObjectMeta::default()
            };
            let found = of_maps(&map, &pools);
            let found: Vec<_> = found.iter().collect();
            assert_eq!(found, expected, "{namespace}/{name}");
        }
    }

    /// Check F03: while CRDs and RBAC are being installed, no error is reported.
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
