//! Secrets, ConfigMaps and Services of the control plane namespace, and the Deployments of API servers, by watches.

use std::sync::Arc;

use control_plane_component::Objects;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt as _};
use serde_json::json;
use support::controller::Wake;
use support::health::Health;

use super::super::context::{run_watch, wait_until_synced};
use super::super::error::Error;
use super::desired::SERVERS;

/// The objects that desired objects are built from.
pub(in super::super) struct Sources(Vec<(ApiResource, Store<DynamicObject>)>);

/// The writers of the caches.
#[derive(Default)]
pub(in super::super) struct Writers(Vec<(Watched, Writer<DynamicObject>)>);

/// What is watched.
#[derive(Debug, Clone)]
struct Watched {
    /// The name of its health check.
    check: &'static str,
    resource: ApiResource,
    config: watcher::Config,
}

// === impl Sources ===

impl Sources {
    pub(in super::super) fn new() -> (Self, Writers) {
        let writers = watched().map(|watched| {
            let writer = Writer::new(watched.resource.clone());
            (watched, writer)
        });
        let writers = Writers(writers.collect());
        let kinds = writers
            .0
            .iter()
            .map(|(watched, writer)| (watched.resource.clone(), writer.as_reader()));
        (Self(kinds.collect()), writers)
    }

    /// The Services.
    pub(in super::super) async fn services(&self) -> Result<Vec<Arc<DynamicObject>>, Error> {
        let store = self.store::<Service>().await?;
        Ok(store.map(Store::state).unwrap_or_default())
    }

    /// A ConfigMap.
    pub(in super::super) async fn config_map(
        &self,
        name: &str,
    ) -> Result<Option<Arc<DynamicObject>>, Error> {
        let store = self.store::<ConfigMap>().await?;
        Ok(store.and_then(|store| store.find(|it| it.name_any() == name)))
    }

    /// The Secrets.
    pub(in super::super) async fn secrets(&self) -> Result<Vec<Arc<DynamicObject>>, Error> {
        let store = self.store::<Secret>().await?;
        Ok(store.map(Store::state).unwrap_or_default())
    }

    async fn store<K>(&self) -> Result<Option<&Store<DynamicObject>>, Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let wanted = resource::<K>();
        let mut kinds = self.0.iter();
        let Some((_, store)) = kinds.find(|(resource, _)| *resource == wanted) else {
            return Ok(None);
        };
        wait_until_synced(store, &wanted.plural).await?;
        Ok(Some(store))
    }

    /// All objects.
    pub(super) async fn objects(&self) -> Result<Objects, Error> {
        let mut objects = Objects::default();
        for (resource, store) in &self.0 {
            wait_until_synced(store, &resource.plural).await?;
            for object in store.state() {
                let mut value = serde_json::to_value(&*object).unwrap_or_default();
                value["apiVersion"] = json!(resource.api_version);
                value["kind"] = json!(resource.kind);
                objects.insert(value);
            }
        }
        Ok(objects)
    }
}

// === impl Writers ===

impl Writers {
    /// Updates the caches, and triggers the controllers that read them.
    pub(in super::super) fn watches(
        self,
        client: &kube::Client,
        namespace: &str,
        wakes: &[Wake],
        health: &Arc<Health>,
    ) -> Vec<LocalBoxFuture<'static, ()>> {
        let watch = |(watched, writer): (Watched, Writer<DynamicObject>)| {
            let api = Api::namespaced_with(client.clone(), namespace, &watched.resource);
            let problem = "objects of the control plane are not watched yet";
            let check = health.check(watched.check, problem);
            let future = run_watch(api, watched.config, writer, wakes.to_vec(), check);
            Box::pin(future) as LocalBoxFuture<'static, ()>
        };
        self.0.into_iter().map(watch).collect()
    }
}

fn watched() -> impl Iterator<Item = Watched> {
    let all = |check, resource| Watched {
        check,
        resource,
        config: watcher::Config::default(),
    };
    let kinds = [
        all("secrets", resource::<Secret>()),
        all("config-maps", resource::<ConfigMap>()),
        all("services", resource::<Service>()),
    ];
    // Others change often, and nothing depends on them.
    let servers = SERVERS.map(|name| Watched {
        check: name,
        resource: resource::<Deployment>(),
        config: watcher::Config::default().fields(&format!("metadata.name={name}")),
    });
    kinds.into_iter().chain(servers)
}

fn resource<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}
