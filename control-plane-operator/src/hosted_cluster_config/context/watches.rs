//! Watches that update the caches and trigger the controllers.
//!
//! Users of the hosted cluster decide how large its objects are: only those that a controller reads are watched, and of
//! webhooks only the URLs are kept.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Config, Event, watcher};
use serde::de::DeserializeOwned;
use support::error::chain;
use support::health::{Check, Health};
use support::reconcile::Backoff;
use support::watch::watch_failed;

use super::{Caches, Context, Wake, Wakes};
use crate::encryption::SERVER;
use crate::hosted_cluster_config::{control_plane, service_authorities, webhook_validation};

/// Webhook configurations that are read at once, before they are reduced.
const PAGE: u32 = 20;

type Work<'a> = Vec<LocalBoxFuture<'a, ()>>;

// === impl Context ===

impl Context {
    /// Updates the caches, and triggers the controllers that read them.
    pub(super) fn watches(&self, caches: Caches, wakes: &Wakes, health: &Arc<Health>) -> Work<'_> {
        let Caches {
            control_planes,
            machines,
            machine_sets,
            nodes,
            requests,
            validating,
            mutating,
            config_maps,
            api_servers,
            // Their watches are started with their readers.
            sources: _,
        } = caches;
        let mut work: Work<'_> = vec![
            Box::pin(run_watch(
                self.in_namespace(&control_plane::resource()),
                Config::default(),
                control_planes,
                wakes.of_control_plane(),
                health.check("control-plane", "the HostedControlPlane is not watched yet"),
            )),
            Box::pin(run_watch(
                Api::all(self.guest.clone()),
                Config::default(),
                nodes,
                vec![wakes.cluster.clone()],
                health.check("nodes", "Nodes are not watched yet"),
            )),
            Box::pin(run_watch(
                Api::all(self.guest.clone()),
                Config::default(),
                requests,
                vec![wakes.cluster.clone()],
                health.check("requests", "CertificateSigningRequests are not watched yet"),
            )),
            Box::pin(run_watch(
                Api::namespaced(self.management.clone(), &self.namespace),
                Config::default().fields(&format!("metadata.name={SERVER}")),
                api_servers,
                vec![wakes.encryption.clone()],
                health.check(SERVER, "the Deployment of API servers is not watched yet"),
            )),
            self.webhook_watch(validating, wakes, health, "validating-webhooks"),
            self.webhook_watch(mutating, wakes, health, "mutating-webhooks"),
        ];
        work.extend(self.authority_watches(config_maps, wakes, health));
        if self.has_machines {
            work.extend(self.machine_watches(machines, machine_sets, wakes, health));
        }
        work
    }

    fn webhook_watch<K>(
        &self,
        writer: Writer<K>,
        wakes: &Wakes,
        health: &Arc<Health>,
        check: &'static str,
    ) -> LocalBoxFuture<'static, ()>
    where
        K: webhook_validation::Configuration + Send + Sync + 'static,
    {
        let api: Api<K> = Api::all(self.guest.clone());
        let events = watcher(api, Config::default().page_size(PAGE))
            .backoff(Backoff::default())
            .modify(K::reduce);
        let check = health.check(check, "webhooks are not watched yet");
        Box::pin(run(events, writer, vec![wakes.webhooks.clone()], check))
    }

    /// One watch for each ConfigMap: its namespace has others, which are not read.
    fn authority_watches(
        &self,
        writers: [Writer<ConfigMap>; 2],
        wakes: &Wakes,
        health: &Arc<Health>,
    ) -> [LocalBoxFuture<'static, ()>; 2] {
        let mut names = service_authorities::SOURCES.into_iter();
        writers.map(|writer| {
            let name = names.next().unwrap_or_default();
            let future = run_watch(
                Api::namespaced(self.guest.clone(), service_authorities::NAMESPACE),
                Config::default().fields(&format!("metadata.name={name}")),
                writer,
                vec![wakes.authorities.clone()],
                health.check(name, "ConfigMaps with authorities are not watched yet"),
            );
            Box::pin(future) as LocalBoxFuture<'static, ()>
        })
    }

    fn machine_watches(
        &self,
        machines: Writer<DynamicObject>,
        machine_sets: Writer<DynamicObject>,
        wakes: &Wakes,
        health: &Arc<Health>,
    ) -> [LocalBoxFuture<'static, ()>; 2] {
        [
            Box::pin(run_watch(
                self.in_namespace(&self.machine),
                Config::default(),
                machines,
                vec![wakes.cluster.clone()],
                health.check("machines", "Machines are not watched yet"),
            )),
            Box::pin(run_watch(
                self.in_namespace(&self.machine_set),
                Config::default(),
                machine_sets,
                vec![wakes.cluster.clone()],
                health.check("machine-sets", "MachineSets are not watched yet"),
            )),
        ]
    }

    fn in_namespace(&self, resource: &kube::api::ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.management.clone(), &self.namespace, resource)
    }
}

// === impl Wakes ===

impl Wakes {
    /// Triggers of the controllers that read the HostedControlPlane.
    fn of_control_plane(&self) -> Vec<Wake> {
        let all = [
            &self.hcp,
            &self.cluster,
            &self.resources,
            &self.authorities,
            &self.encryption,
        ];
        all.into_iter().cloned().collect()
    }
}

/// Updates a cache from a watch, and triggers controllers on changes.
pub(in super::super) async fn run_watch<K>(
    api: Api<K>,
    config: Config,
    writer: Writer<K>,
    wakes: Vec<Wake>,
    check: Check,
) where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Eq + Hash + Clone + Unpin,
{
    let events = watcher(api, config)
        .backoff(Backoff::default())
        .modify(|found| found.meta_mut().managed_fields = None);
    run(events, writer, wakes, check).await;
}

async fn run<K>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    writer: Writer<K>,
    wakes: Vec<Wake>,
    check: Check,
) where
    K: kube::Resource + Clone + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    let mut events = std::pin::pin!(events.reflect(writer));
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => {
                check.pass();
                wakes.iter().for_each(Wake::wake);
            }
            Err(error) if watch_failed(&error) => check.fail(chain(&error)),
            Err(error) => tracing::debug!(error = chain(&error), "Watch failed"),
        }
    }
}
