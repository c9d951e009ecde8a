//! Secrets, ConfigMaps and Services of the control plane namespace, by watches.

use std::sync::Arc;

use control_plane_component::Objects;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::{Api, Resource};
use serde_json::json;
use support::health::Health;

use super::super::context::{run_watch, wait_until_synced};
use super::super::controller::Wake;
use super::super::error::Error;

/// The objects that desired objects are built from.
pub(in super::super) struct Sources {
    kinds: [(ApiResource, Store<DynamicObject>); 3],
}

/// The writers of the caches.
#[derive(Default)]
pub(in super::super) struct Writers(Vec<(ApiResource, Writer<DynamicObject>)>);

// === impl Sources ===

impl Sources {
    pub(in super::super) fn new() -> (Self, Writers) {
        let resources = [
            resource::<Secret>(),
            resource::<ConfigMap>(),
            resource::<Service>(),
        ];
        let writers = resources.map(|resource| (resource.clone(), Writer::new(resource)));
        let kinds = writers
            .each_ref()
            .map(|(resource, writer)| (resource.clone(), writer.as_reader()));
        (Self { kinds }, Writers(writers.into()))
    }

    /// All objects.
    pub(super) async fn objects(&self) -> Result<Objects, Error> {
        let mut objects = Objects::default();
        for (resource, store) in &self.kinds {
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
    /// Updates the caches, and triggers the controller that reads them.
    pub(in super::super) fn watches(
        self,
        client: &kube::Client,
        namespace: &str,
        wake: &Wake,
        health: &Arc<Health>,
    ) -> Vec<LocalBoxFuture<'static, ()>> {
        let watch = |(resource, writer): (ApiResource, Writer<DynamicObject>)| {
            let api = Api::namespaced_with(client.clone(), namespace, &resource);
            let name = match resource.kind.as_str() {
                "Secret" => "secrets",
                "ConfigMap" => "config-maps",
                _ => "services",
            };
            let check = health.check(name, "objects of the control plane are not watched yet");
            let future = run_watch(api, writer, vec![wake.clone()], check);
            Box::pin(future) as LocalBoxFuture<'static, ()>
        };
        self.0.into_iter().map(watch).collect()
    }
}

fn resource<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}
