//! What is watched: HostedClusters, the Routes and Services of control planes, and whose namespaces are whose.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::names::HOSTED_CONTROL_PLANE;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use support::error::chain;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::cluster_ref;
use crate::kinds;

/// A kind that is watched.
pub(super) struct Watched {
    kind: &'static str,
    /// The resource, as Roles name it, with its group.
    resource: &'static str,
}

const CLUSTERS: Watched = Watched {
    kind: "HostedClusters",
    resource: "hostedclusters.hypershift.openshift.io",
};
const ROUTES: Watched = Watched {
    kind: "Routes",
    resource: "routes.route.openshift.io",
};
const SERVICES: Watched = Watched {
    kind: "Services",
    resource: "services",
};
/// Their annotations say whose control plane is in them: without that, a cluster could serve the hosts of another one.
pub(super) const NAMESPACES: Watched = Watched {
    kind: "Namespaces",
    resource: "namespaces",
};

/// The objects, as the watches report them.
pub(super) struct Stores {
    clusters: Store<DynamicObject>,
    routes: Store<DynamicObject>,
    services: Store<Service>,
    namespaces: Store<PartialObjectMeta<Namespace>>,
    change: Arc<Notify>,
    watches: [JoinHandle<()>; 4],
}

/// The objects at one time.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) clusters: Vec<Arc<DynamicObject>>,
    pub(super) routes: Vec<Arc<DynamicObject>>,
    /// By namespace and name.
    pub(super) services: BTreeMap<(String, String), Arc<Service>>,
    pub(super) namespaces: BTreeMap<String, Arc<PartialObjectMeta<Namespace>>>,
}

// === impl Stores ===

impl Stores {
    /// Starts the watches, which end when this is dropped.
    pub(super) fn watch(client: &kube::Client) -> Self {
        let change = Arc::new(Notify::new());
        let all = watcher::Config::default;
        let labelled = all().labels(HOSTED_CONTROL_PLANE);
        let resource = cluster_ref::resource();
        let (clusters, writer) = store(&resource);
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let events = watcher(api, all()).modify(without_status);
        let of_clusters = spawn(&CLUSTERS, events, writer, &change);
        let (route_store, writer) = store(&kinds::route());
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kinds::route());
        let events = watcher(api, labelled).modify(without_status);
        let of_routes = spawn(&ROUTES, events, writer, &change);
        let (services, writer) = reflector::store();
        let events = watcher(Api::<Service>::all(client.clone()), all()).modify(|it| {
            it.metadata.managed_fields = None;
            it.metadata.annotations = None;
            it.status = None;
        });
        let of_services = spawn(&SERVICES, events, writer, &change);
        let (namespaces, writer) = reflector::store();
        let api = Api::<PartialObjectMeta<Namespace>>::all(client.clone());
        let events = watcher(api, all()).modify(|it| it.metadata.managed_fields = None);
        let of_namespaces = spawn(&NAMESPACES, events, writer, &change);
        Self {
            clusters,
            routes: route_store,
            services,
            namespaces,
            change,
            watches: [of_clusters, of_routes, of_services, of_namespaces],
        }
    }

    /// Completes after a change. A change that no caller has waited for is kept.
    pub(super) async fn changed(&self) {
        self.change.notified().await;
    }

    /// All objects, once all kinds are listed: without one of them, clusters that exist would not be served.
    pub(super) fn objects(&self) -> Option<Objects> {
        use futures::FutureExt as _;

        let listed = [
            self.clusters.wait_until_ready().now_or_never().is_some(),
            self.routes.wait_until_ready().now_or_never().is_some(),
            self.services.wait_until_ready().now_or_never().is_some(),
            self.namespaces.wait_until_ready().now_or_never().is_some(),
        ];
        if listed.contains(&false) {
            return None;
        }
        let service = |it: Arc<Service>| ((it.namespace().unwrap_or_default(), it.name_any()), it);
        Some(Objects {
            clusters: self.clusters.state(),
            routes: self.routes.state(),
            services: self.services.state().into_iter().map(service).collect(),
            namespaces: self
                .namespaces
                .state()
                .into_iter()
                .map(|it| (it.name_any(), it))
                .collect(),
        })
    }
}

impl Drop for Stores {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.abort();
        }
    }
}

fn store(resource: &ApiResource) -> (Store<DynamicObject>, Writer<DynamicObject>) {
    let writer = Writer::new(resource.clone());
    (writer.as_reader(), writer)
}

/// Leaves out what is large and changes often, and is not read.
fn without_status(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
    object.data["status"] = serde_json::Value::Null;
}

fn spawn<K>(
    watched: &'static Watched,
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    writer: Writer<K>,
    change: &Arc<Notify>,
) -> JoinHandle<()>
where
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
    ObjectRef<K>: Send + Sync,
{
    tokio::spawn(keep(watched, events, writer, Arc::clone(change)))
}

/// Keeps a store up to date; failures are logged and retried.
async fn keep<K>(
    watched: &Watched,
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send,
    writer: Writer<K>,
    change: Arc<Notify>,
) where
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
    ObjectRef<K>: Send + Sync,
{
    let kind = watched.kind;
    let events = reflector::reflector(writer, events).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let error = match event {
            // A list is complete with its last event.
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => continue,
            Ok(_) => {
                change.notify_one();
                continue;
            }
            Err(error) => error,
        };
        let permission = watched.missing_permission(&error);
        let error = chain(&error);
        if let Some(permission) = permission {
            tracing::error!(kind, permission, error, "Missing permission");
        } else {
            tracing::warn!(kind, error, "Failed to watch");
        }
    }
}

// === impl Watched ===

impl Watched {
    /// The permission that a refused request needs.
    pub(super) fn missing_permission(&self, error: &watcher::Error) -> Option<String> {
        use watcher::Error::{InitialListFailed, WatchError, WatchStartFailed};

        let code = match error {
            InitialListFailed(kube::Error::Api(status))
            | WatchStartFailed(kube::Error::Api(status))
            | WatchError(status) => status.code,
            _ => return None,
        };
        let resource = self.resource;
        (code == 403).then(|| format!("get, list, watch {resource} in all namespaces"))
    }
}
