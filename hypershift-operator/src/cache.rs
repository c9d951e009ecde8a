//! What the leader's watches know, so that reconciles, resyncs and fleet metrics need no requests.
//!
//! ```text
//! watches ──┬─> stores: HostedClusters, NodePools and Namespaces, trimmed to what is read of them
//!           └─> index: the version of every watched object, by namespace
//!                  │ snapshot, before a reconcile reads
//!                  v
//!               settled: what a complete reconcile has read ── unchanged? ──> no request
//! ```
//!
//! A reconcile of something that has changed reads it with requests, and so does the guard before its first write: a cache
//! that lags behind delays a reconcile, and never makes it write stale data. A watch that has not listed yet, or has
//! failed, is unknown, and never empty.

mod index;
pub(crate) mod observed_groups;
mod settled;
mod slim;
mod written;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::annotations::node_pool::NODE_POOL;
use api::names::control_plane_namespace;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use support::controller::ObjectKey;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::cluster_ref::{Id, resource};
use crate::names::CLUSTER;
pub(crate) use index::{
    API_SERVER, AZURE_LINKS, CLUSTER_INPUTS, CONFIG_MAPS, ENDPOINT_SERVICES, Found, GCP_LINKS,
    GRANTS, HOSTED_CLUSTERS, IGNITION_DEPLOYMENTS, IGNITION_PROXIES, IGNITION_ROUTES,
    IGNITION_SERVICES, Index, LABELLED, LEGACY, NAMESPACES, NODE_POOLS, Object, POOL_INPUTS, Part,
    SECRETS, Snapshot,
};
pub(crate) use settled::{Recheck, Settled};
pub(crate) use slim::{cluster as trim_cluster, counted, pool as trim_pool, pool_inputs};

/// How long the result of a reconcile is used while all watches are unchanged: after that, every object is read again. It
/// finds what is not watched, such as a change of the management cluster's API groups.
pub(crate) const FULL_CHECK: Duration = Duration::from_hours(10);

/// How long reconciles wait for the first lists of all watches.
const SYNC: Duration = Duration::from_secs(10);

/// The metadata of a Namespace.
pub(crate) type NamespaceMeta = PartialObjectMeta<v1::Namespace>;

/// All of it. It lives as long as a leader's term.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) index: Index,
    /// Complete reconciles of HostedClusters.
    pub(crate) clusters: Settled,
    /// Complete reconciles of NodePools.
    pub(crate) pools: Settled,
    pub(crate) stores: Stores,
    written: written::Written,
    kinds: Mutex<observed_groups::Kinds>,
    writers: Mutex<Option<Writers>>,
    /// Counts changes of what resyncs and fleet metrics read.
    changes: watch::Sender<u64>,
    touched: Touched,
    /// When a CRD has changed.
    crds: watch::Sender<Option<Instant>>,
}

/// Objects that are kept.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    pub(crate) clusters: Store<DynamicObject>,
    pub(crate) pools: Store<DynamicObject>,
    pub(crate) namespaces: Store<NamespaceMeta>,
}

/// The writers of the stores.
#[derive(Debug)]
pub(crate) struct Writers {
    pub(crate) clusters: ClusterWriters,
    pub(crate) pools: PoolWriters,
}

/// The writers of the controller of HostedClusters.
#[derive(Debug)]
pub(crate) struct ClusterWriters {
    pub(crate) objects: Writer<DynamicObject>,
    pub(crate) namespaces: Writer<NamespaceMeta>,
    /// Requests for objects of which another part of the operator has seen a change.
    pub(crate) touched: mpsc::UnboundedReceiver<ObjectKey>,
}

/// The writers of the controller of NodePools.
#[derive(Debug)]
pub(crate) struct PoolWriters {
    pub(crate) objects: Writer<DynamicObject>,
    /// Requests for objects of which another part of the operator has seen a change.
    pub(crate) touched: mpsc::UnboundedReceiver<ObjectKey>,
    /// HostedClusters of which something has changed that NodePools read.
    pub(crate) clusters: mpsc::UnboundedReceiver<ChangedClusters>,
}

/// HostedClusters of which something has changed that NodePools read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangedClusters {
    One(ObjectKey),
    /// Any may have changed: they were listed again.
    All,
}

#[derive(Debug)]
struct Touched {
    clusters: mpsc::UnboundedSender<ObjectKey>,
    pools: mpsc::UnboundedSender<ObjectKey>,
    pool_inputs: mpsc::UnboundedSender<ChangedClusters>,
}

// === impl Cache ===

impl Cache {
    pub(crate) fn new() -> Self {
        let clusters = Writer::new(resource());
        let pools = Writer::new(slim::node_pools());
        let namespaces = Writer::new(());
        let (to_clusters, touched_clusters) = mpsc::unbounded_channel();
        let (to_pools, touched_pools) = mpsc::unbounded_channel();
        let (pool_inputs, changed_clusters) = mpsc::unbounded_channel();
        Self {
            index: Index::new(&index::ALL),
            clusters: Settled::default(),
            pools: Settled::default(),
            stores: Stores {
                clusters: clusters.as_reader(),
                pools: pools.as_reader(),
                namespaces: namespaces.as_reader(),
            },
            written: written::Written::default(),
            kinds: Mutex::default(),
            writers: Mutex::new(Some(Writers {
                clusters: ClusterWriters {
                    objects: clusters,
                    namespaces,
                    touched: touched_clusters,
                },
                pools: PoolWriters {
                    objects: pools,
                    touched: touched_pools,
                    clusters: changed_clusters,
                },
            })),
            changes: watch::Sender::new(0),
            crds: watch::Sender::new(None),
            touched: Touched {
                clusters: to_clusters,
                pools: to_pools,
                pool_inputs,
            },
        }
    }

    /// Watches in sync that have these objects and no others.
    #[cfg(test)]
    pub(crate) fn sync(&self, objects: &[(&str, &DynamicObject)]) {
        self.set_kinds(Some(BTreeMap::new()));
        for watch in index::ALL {
            self.see::<DynamicObject>(watch, &Ok(Event::Init));
            self.see::<DynamicObject>(watch, &Ok(Event::InitDone));
        }
        for (watch, object) in objects {
            self.see(watch, &Ok(Event::Apply((*object).clone())));
        }
    }

    fn kinds(&self) -> MutexGuard<'_, observed_groups::Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writers of the stores, for the first caller.
    pub(crate) fn take_writers(&self) -> Option<Writers> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.take()
    }

    /// The versions of the objects of a control plane and of these objects; none while a watch is not in sync. Call it
    /// before any of them is read.
    pub(crate) fn snapshot(
        &self,
        control_plane: &str,
        which: Part,
        objects: &[Object<'_>],
    ) -> Option<Snapshot> {
        let snapshot = self.index.snapshot(control_plane, which)?;
        self.index.also(snapshot, objects)
    }

    /// Waits until all watches are in sync, so that the first reconciles are remembered. It gives up after a while: one
    /// kind that cannot be listed does not stop all reconciles.
    pub(crate) async fn until_synced(&self) {
        let is_known = || self.kinds().are_known() && self.index.is_all_synced();
        // Until then, reconciles read what is not in sync.
        let _ = timeout(SYNC, self.index.until(is_known)).await;
    }

    /// An object has changed that resyncs and fleet metrics read, or its watch has failed.
    pub(crate) fn notify_changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Completes when such a change is seen.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A CRD has changed: kinds may be served that were not.
    fn crd_changed(&self) {
        self.crds.send_replace(Some(Instant::now()));
    }

    /// When a CRD has changed.
    pub(crate) fn crds(&self) -> watch::Receiver<Option<Instant>> {
        self.crds.subscribe()
    }

    /// Handles an event about an object that may belong to a HostedCluster or a NodePool.
    pub(crate) fn see<K: ResourceExt>(
        &self,
        watch: &str,
        event: &Result<watcher::Event<K>, watcher::Error>,
    ) {
        self.index.observe(watch, event);
        if let Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = event {
            self.touch(object.meta());
        }
    }

    /// Handles an event about a trimmed HostedCluster.
    pub(crate) fn see_cluster(
        &self,
        event: &Result<watcher::Event<DynamicObject>, watcher::Error>,
    ) {
        self.index.observe(HOSTED_CLUSTERS, event);
        let version = slim::with_pool_inputs_version;
        if !self.index.observe_as(POOL_INPUTS, event, version) {
            return;
        }
        let changed = match event {
            Ok(Event::Apply(found) | Event::Delete(found)) => {
                ChangedClusters::One(ObjectKey::of(&found.metadata))
            }
            Ok(Event::Init | Event::InitApply(_) | Event::InitDone) | Err(_) => {
                ChangedClusters::All
            }
        };
        // It fails only when the controller has ended.
        let _ = self.touched.pool_inputs.send(changed);
    }

    /// Handles an event about a trimmed NodePool, which is in the store already.
    pub(crate) fn see_pool(&self, event: &Result<watcher::Event<DynamicObject>, watcher::Error>) {
        self.index.observe(NODE_POOLS, event);
        let version = slim::with_cluster_inputs_version;
        if !self.index.observe_as(CLUSTER_INPUTS, event, version) {
            return;
        }
        if let Ok(Event::Apply(found) | Event::Delete(found)) = event
            && let Some(cluster) = slim::cluster_of(found)
        {
            // It fails only when the controller has ended.
            let _ = self.touched.clusters.send(cluster);
        }
    }

    /// The NodePools of a HostedCluster that report whether their virtual machines can be migrated live, and whether they
    /// can; none while the watch is not in sync.
    pub(crate) fn live_migration(&self, cluster: &Id) -> Option<BTreeMap<String, bool>> {
        if !self.index.is_synced(NODE_POOLS) {
            return None;
        }
        let pools = self.stores.pools.state();
        let pools = pools.iter().filter(|pool| slim::is_of(pool, cluster));
        let reported = pools.filter_map(|pool| {
            let name = pool.metadata.name.clone()?;
            Some((name, slim::live_migration(pool)?))
        });
        Some(reported.collect())
    }

    /// Requests a reconcile of the HostedCluster or NodePool that a changed object belongs to, and that it may name.
    fn touch(&self, metadata: &ObjectMeta) {
        // It fails only when the controller has ended.
        let pool = annotated(metadata, NODE_POOL.key());
        if let Some(pool) = pool.filter(|it| may_name_pool(metadata, it)) {
            let _ = self.touched.pools.send(pool);
        }
        let cluster = annotated(metadata, CLUSTER);
        if let Some(cluster) = cluster.filter(|it| may_name_cluster(metadata, it)) {
            let _ = self.touched.clusters.send(cluster);
        }
    }
}

/// The object that an annotation names as `<namespace>/<name>`.
pub(crate) fn annotated(metadata: &ObjectMeta, key: &str) -> Option<ObjectKey> {
    let (namespace, name) = metadata.annotations.as_ref()?.get(key)?.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}

/// Whether an object is where those of this HostedCluster are: in its namespace, in that of its control plane, or in none.
/// A user of another namespace can annotate objects there with any cluster: such an object must not cause reconciles of
/// the cluster of another tenant.
fn may_name_cluster(metadata: &ObjectMeta, cluster: &ObjectKey) -> bool {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    namespace.is_empty()
        || namespace == cluster.namespace
        || namespace == control_plane_namespace(&cluster.namespace, &cluster.name)
}

/// The same of a NodePool: an annotation does not name its HostedCluster, so its control plane is any of its namespace.
fn may_name_pool(metadata: &ObjectMeta, pool: &ObjectKey) -> bool {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let rest = namespace.strip_prefix(pool.namespace.as_str());
    namespace.is_empty() || rest.is_some_and(|it| it.is_empty() || it.starts_with('-'))
}

/// The HostedCluster that an object of a watch belongs to, and that it may name.
pub(crate) fn owner(metadata: &ObjectMeta, watch: &str) -> Option<ObjectKey> {
    let cluster = annotated(metadata, CLUSTER)?;
    let counts = GRANTS.contains(&watch) || may_name_cluster(metadata, &cluster);
    counts.then_some(cluster)
}

/// The object of a store with this key.
pub(crate) fn get(
    store: &Store<DynamicObject>,
    resource: ApiResource,
    key: &ObjectKey,
) -> Option<Arc<DynamicObject>> {
    let reference = ObjectRef::new_with(&key.name, resource).within(&key.namespace);
    store.get(&reference)
}

/// The key of a HostedCluster.
pub(crate) fn key(id: &Id) -> ObjectKey {
    ObjectKey::new(id.namespace.clone(), id.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A HostedCluster reports for its NodePools whether their virtual machines can be migrated live.
    #[test]
    fn a_cluster_is_reconciled_if_live_migration_of_a_pool_changes() {
        let pool = |version: &str, status: &str| {
            let mut pool: DynamicObject = serde_json::from_value(json!({
                "metadata": { "namespace": "b", "name": "n", "uid": "u", "resourceVersion": version },
                "spec": { "clusterName": "prod" },
                "status": { "conditions": [{ "type": "KubeVirtNodesLiveMigratable", "status": status }] },
            }))
            .unwrap();
            trim_pool(&mut pool);
            pool
        };
        let cache = Cache::new();
        let mut writers = cache.take_writers().unwrap();
        cache.sync(&[]);
        let id = Id {
            namespace: "b".to_owned(),
            name: "prod".to_owned(),
        };
        let snapshot = || cache.snapshot("b-prod", Part::Owned, &[]).unwrap();
        for (version, status, is_change, expected) in [
            ("1", "Unknown", true, None),
            ("2", "True", true, Some(true)),
            ("3", "True", false, Some(true)),
            ("4", "False", true, Some(false)),
        ] {
            let before = snapshot();
            let event = Event::Apply(pool(version, status));
            writers.pools.objects.apply_watcher_event(&event);
            cache.see_pool(&Ok(event));
            let requested = writers.clusters.touched.try_recv().ok();
            let expected_request = is_change.then(|| ObjectKey::new("b", "prod"));
            assert_eq!(requested, expected_request, "{version}");
            // A pool that reports nothing is not read.
            let is_read = is_change && version != "1";
            assert_eq!(snapshot() != before, is_read, "{version}");
            let found = cache.live_migration(&id).unwrap();
            assert_eq!(found.get("n").copied(), expected, "{version}");
        }
        assert_eq!(
            cache.live_migration(&Id {
                name: "other".to_owned(),
                ..id
            }),
            Some(BTreeMap::new())
        );
    }

    /// Check T01.
    #[test]
    fn an_object_requests_nothing_of_another_tenant() {
        let cluster = CLUSTER;
        let pool = NODE_POOL.key();
        let cases = [
            (cluster, Some("b"), true),
            (cluster, Some("b-prod"), true),
            (cluster, None, true),
            (cluster, Some("a"), false),
            (cluster, Some("b-other"), false),
            (cluster, Some("b-"), false),
            (pool, Some("b"), true),
            (pool, Some("b-prod"), true),
            (pool, Some("b-other"), true),
            (pool, None, true),
            (pool, Some("a"), false),
            (pool, Some("bb"), false),
            (pool, Some("a-b"), false),
        ];
        for (annotation, namespace, expected) in cases {
            let cache = Cache::new();
            let mut writers = cache.take_writers().unwrap();
            let object: DynamicObject = serde_json::from_value(json!({ "metadata": {
                "namespace": namespace, "name": "n", "annotations": { annotation: "b/prod" },
            }}))
            .unwrap();
            cache.see(SECRETS, &Ok(Event::Apply(object)));
            let requests = if annotation == cluster {
                &mut writers.clusters.touched
            } else {
                &mut writers.pools.touched
            };
            let requested = requests.try_recv().ok();
            let expected = expected.then(|| ObjectKey::new("b", "prod"));
            assert_eq!(requested, expected, "{annotation} in {namespace:?}");
        }
    }
}
