//! What the leader's watches know, so that passes, surveys and counts need no requests.
//!
//! ```text
//! watches ──┬─> stores: HostedClusters, NodePools and Namespaces, trimmed to what is read of them
//!           └─> index: the version of every watched object, by namespace
//!                  │ look, before a pass reads
//!                  v
//!               settled: what a pass without open ends was over ── unchanged? ──> no request
//! ```
//!
//! A pass over something that has changed reads it with requests, and so does the guard before its first write: a cache
//! that lags behind delays a pass, and never has it write what is no longer true. What a watch cannot tell, because it
//! has not listed yet or has failed, is unknown, and never "nothing".

pub(crate) mod evidence;
mod index;
mod settled;
mod slim;
mod written;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::annotations::node_pool::NODE_POOL;
use api::names::control_plane_namespace;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use support::controller::ObjectKey;
use tokio::sync::{mpsc, watch};

use crate::hosted_cluster::names::CLUSTER;
use crate::hosted_cluster::{Id, resource};
pub(crate) use index::{
    API_SERVER, CONFIG_MAPS, HOSTED_CLUSTERS, IGNITION_DEPLOYMENTS, IGNITION_PROXIES,
    IGNITION_ROUTES, IGNITION_SERVICES, Index, LABELLED, LEGACY, Look, NAMESPACES, NODE_POOLS,
    Object, SECRETS,
};
pub(crate) use settled::{Again, Settled};
pub(crate) use slim::{cluster as slim_cluster, counted, pool as slim_pool};

/// How long what a pass has found is relied on, whatever the watches tell: after that, every object is read again. It
/// finds what no watch tells of, such as a change of the management cluster's API groups.
pub(crate) const FULL_CHECK: Duration = Duration::from_hours(10);

/// A Namespace, as far as its metadata tells.
pub(crate) type NamespaceMeta = PartialObjectMeta<v1::Namespace>;

/// All of it. It lives as long as a term.
#[derive(Debug)]
pub(crate) struct Cache {
    pub(crate) index: Index,
    /// Passes over HostedClusters after which nothing was left to do.
    pub(crate) clusters: Settled,
    /// The same of NodePools.
    pub(crate) pools: Settled,
    pub(crate) stores: Stores,
    written: written::Written,
    kinds: Mutex<evidence::Kinds>,
    writers: Mutex<Option<Writers>>,
    /// Counts changes of what surveys and counts look at.
    changes: watch::Sender<u64>,
    touched: Touched,
}

/// Objects that are kept.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    pub(crate) clusters: Store<DynamicObject>,
    pub(crate) pools: Store<DynamicObject>,
    pub(crate) namespaces: Store<NamespaceMeta>,
}

/// Who fills the stores.
#[derive(Debug)]
pub(crate) struct Writers {
    pub(crate) clusters: ClusterWriters,
    pub(crate) pools: PoolWriters,
}

/// What the controller of HostedClusters fills.
#[derive(Debug)]
pub(crate) struct ClusterWriters {
    pub(crate) objects: Writer<DynamicObject>,
    pub(crate) namespaces: Writer<NamespaceMeta>,
    /// Those of which an object has changed that another part of the operator watches.
    pub(crate) touched: mpsc::UnboundedReceiver<ObjectKey>,
}

/// What the controller of NodePools fills.
#[derive(Debug)]
pub(crate) struct PoolWriters {
    pub(crate) objects: Writer<DynamicObject>,
    /// Those of which an object has changed that another part of the operator watches.
    pub(crate) touched: mpsc::UnboundedReceiver<ObjectKey>,
}

#[derive(Debug)]
struct Touched {
    clusters: mpsc::UnboundedSender<ObjectKey>,
    pools: mpsc::UnboundedSender<ObjectKey>,
}

// === impl Cache ===

impl Cache {
    pub(crate) fn new() -> Self {
        let clusters = Writer::new(resource());
        let pools = Writer::new(slim::node_pools());
        let namespaces = Writer::new(());
        let (to_clusters, touched_clusters) = mpsc::unbounded_channel();
        let (to_pools, touched_pools) = mpsc::unbounded_channel();
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
                },
            })),
            changes: watch::Sender::new(0),
            touched: Touched {
                clusters: to_clusters,
                pools: to_pools,
            },
        }
    }

    /// Watches that know of these objects, and that there are no others.
    #[cfg(test)]
    pub(crate) fn sync(&self, objects: &[(&str, &DynamicObject)]) {
        self.kinds_are(Some(std::collections::BTreeMap::new()));
        for watch in index::ALL {
            self.see::<DynamicObject>(watch, &Ok(Event::Init));
            self.see::<DynamicObject>(watch, &Ok(Event::InitDone));
        }
        for (watch, object) in objects {
            self.see(watch, &Ok(Event::Apply((*object).clone())));
        }
    }

    fn kinds(&self) -> MutexGuard<'_, evidence::Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who fills the stores: once.
    pub(crate) fn take_writers(&self) -> Option<Writers> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        writers.take()
    }

    /// What the watches know of a control plane's namespace and of these objects; nothing while one of them does not
    /// know. To be called before any of it is read.
    pub(crate) fn look(&self, control_plane: &str, objects: &[Object<'_>]) -> Option<Look> {
        let look = self.index.look(control_plane)?;
        self.index.also(look, objects)
    }

    /// Something was watched that surveys and counts look at.
    pub(crate) fn has_changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Completes when such a thing is seen.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A watch has told of objects that may belong to a HostedCluster or a NodePool.
    pub(crate) fn see<K: ResourceExt>(
        &self,
        watch: &str,
        told: &Result<watcher::Event<K>, watcher::Error>,
    ) {
        self.index.observe(watch, told);
        if let Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) = told {
            self.touch(object.meta());
        }
    }

    /// An object has changed that may belong to a HostedCluster or a NodePool.
    fn touch(&self, metadata: &ObjectMeta) {
        // Whoever should hear of it has ended otherwise.
        if let Some(pool) = annotated(metadata, NODE_POOL.key()) {
            let _ = self.touched.pools.send(pool);
        }
        if let Some(cluster) = annotated(metadata, CLUSTER) {
            let _ = self.touched.clusters.send(cluster);
        }
    }
}

/// The object that an annotation names as `<namespace>/<name>`.
pub(crate) fn annotated(metadata: &ObjectMeta, key: &str) -> Option<ObjectKey> {
    let (namespace, name) = metadata.annotations.as_ref()?.get(key)?.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}

/// The namespace of the control plane that an object is made for.
fn control_plane(metadata: &ObjectMeta) -> Option<String> {
    let id = annotated(metadata, CLUSTER)?;
    Some(control_plane_namespace(&id.namespace, &id.name))
}

/// The key of a HostedCluster.
pub(crate) fn key(id: &Id) -> ObjectKey {
    ObjectKey::new(id.namespace.clone(), id.name.clone())
}
