//! A cache of the objects that decisions are made from, updated by watches. Its memory is bounded by what is labelled.

use std::fmt::Debug;
use std::sync::Arc;

use api::certificates::v1alpha1::{
    CertificateRevocationRequest, CertificateSigningRequestApproval,
};
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use support::controller::ObjectKey;
use support::error::chain;
use support::reconcile::Backoff;
use tokio::sync::watch;

use super::class::TOTAL_CLIENT_CA;
use super::objects::MANAGED;

/// The caches, for readers.
#[derive(Clone)]
pub(super) struct Cache {
    secrets: Store<Secret>,
    bundles: Store<ConfigMap>,
    total: Store<ConfigMap>,
    revocations: Store<DynamicObject>,
    approvals: Store<DynamicObject>,
    changed: watch::Receiver<u64>,
}

/// The other side: what fills them.
pub(super) struct Watches {
    secrets: Writer<Secret>,
    bundles: Writer<ConfigMap>,
    total: Writer<ConfigMap>,
    revocations: Writer<DynamicObject>,
    approvals: Writer<DynamicObject>,
    changed: watch::Sender<u64>,
}

/// Kind of revocation requests.
pub(super) fn revocations() -> ApiResource {
    ApiResource::erase::<CertificateRevocationRequest>(&())
}

/// Kind of approvals.
pub(super) fn approvals() -> ApiResource {
    ApiResource::erase::<CertificateSigningRequestApproval>(&())
}

/// Creates empty caches.
pub(super) fn new() -> (Cache, Watches) {
    let (secrets, bundles, total) = (Writer::default(), Writer::default(), Writer::default());
    let [revocations, approvals] = [revocations(), approvals()].map(Writer::new);
    let (changed, receiver) = watch::channel(0);
    let cache = Cache {
        secrets: Writer::as_reader(&secrets),
        bundles: Writer::as_reader(&bundles),
        total: Writer::as_reader(&total),
        revocations: Writer::as_reader(&revocations),
        approvals: Writer::as_reader(&approvals),
        changed: receiver,
    };
    let watches = Watches {
        secrets,
        bundles,
        total,
        revocations,
        approvals,
        changed,
    };
    (cache, watches)
}

// === impl Cache ===

impl Cache {
    pub(super) fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        self.secrets.find(|secret| secret.name_any() == name)
    }

    pub(super) fn bundle(&self, name: &str) -> Option<Arc<ConfigMap>> {
        self.bundles
            .find(|config_map| config_map.name_any() == name)
    }

    pub(super) fn total(&self) -> Option<Arc<ConfigMap>> {
        self.total
            .find(|config_map| config_map.name_any() == TOTAL_CLIENT_CA)
    }

    pub(super) fn revocation(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.revocations.find(|object| object.name_any() == name)
    }

    pub(super) fn approval(&self, name: &str) -> Option<Arc<DynamicObject>> {
        self.approvals.find(|object| object.name_any() == name)
    }

    pub(super) fn revocation_keys(&self) -> Vec<ObjectKey> {
        keys(&self.revocations)
    }

    pub(super) fn approval_keys(&self) -> Vec<ObjectKey> {
        keys(&self.approvals)
    }

    /// Completes when all initial lists are complete.
    pub(super) async fn wait_until_synced(&self) {
        // A wait fails only when the watches have ended, which ends the term.
        let _ = self.secrets.wait_until_ready().await;
        let _ = self.bundles.wait_until_ready().await;
        let _ = self.total.wait_until_ready().await;
        let _ = self.revocations.wait_until_ready().await;
        let _ = self.approvals.wait_until_ready().await;
    }

    /// These keys at first, and after each batch of changes.
    pub(super) fn requests<F>(&self, keys: F) -> impl Stream<Item = ObjectKey> + use<F>
    where
        F: Fn() -> Vec<ObjectKey>,
    {
        let changed = self.changed.clone();
        let first = stream::iter(keys());
        let rest = stream::unfold((changed, keys), |(mut changed, keys)| async move {
            changed.changed().await.ok()?;
            let due = keys();
            Some((stream::iter(due), (changed, keys)))
        });
        first.chain(rest.flatten())
    }
}

fn keys(store: &Store<DynamicObject>) -> Vec<ObjectKey> {
    let objects = store.state();
    objects
        .iter()
        .map(|object| ObjectKey::of(&object.metadata))
        .collect()
}

// === impl Watches ===

impl Watches {
    /// Runs the watches of a namespace, with retries.
    pub(super) async fn run(self, client: &kube::Client, namespace: &str) {
        let managed = || watcher::Config::default().labels(MANAGED);
        let one = watcher::Config::default().fields(&format!("metadata.name={TOTAL_CLIENT_CA}"));
        let all = watcher::Config::default;
        let changed = &self.changed;
        let dynamic =
            |resource: &ApiResource| Api::namespaced_with(client.clone(), namespace, resource);
        tokio::join!(
            fill(
                Api::namespaced(client.clone(), namespace),
                managed(),
                self.secrets,
                changed
            ),
            fill(
                Api::namespaced(client.clone(), namespace),
                managed(),
                self.bundles,
                changed
            ),
            fill(
                Api::namespaced(client.clone(), namespace),
                one,
                self.total,
                changed
            ),
            fill(dynamic(&revocations()), all(), self.revocations, changed),
            fill(dynamic(&approvals()), all(), self.approvals, changed),
        );
    }
}

async fn fill<K>(
    api: Api<K>,
    config: watcher::Config,
    writer: Writer<K>,
    changed: &watch::Sender<u64>,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    K::DynamicType: Clone + Debug + Eq + std::hash::Hash,
{
    let events = watcher(api, config).backoff(Backoff::default());
    let events = reflector::reflector(writer, events);
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(_) => changed.send_modify(|count| *count += 1),
            Err(error) => tracing::debug!(error = chain(&error), "Failed to watch"),
        }
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// What a cache has.
    #[derive(Default)]
    pub(in super::super) struct Contents {
        pub(in super::super) secrets: Vec<Secret>,
        pub(in super::super) bundles: Vec<ConfigMap>,
        pub(in super::super) total: Option<ConfigMap>,
        pub(in super::super) revocations: Vec<DynamicObject>,
        pub(in super::super) approvals: Vec<DynamicObject>,
    }

    /// A cache that has been filled.
    pub(in super::super) fn cache(contents: Contents) -> Cache {
        let (cache, mut watches) = new();
        put(&mut watches.secrets, contents.secrets);
        put(&mut watches.bundles, contents.bundles);
        put(&mut watches.total, contents.total.into_iter().collect());
        put(&mut watches.revocations, contents.revocations);
        put(&mut watches.approvals, contents.approvals);
        cache
    }

    fn put<K>(writer: &mut Writer<K>, objects: Vec<K>)
    where
        K: Resource + Clone + 'static,
        K::DynamicType: Clone + Eq + std::hash::Hash,
    {
        for object in objects {
            writer.apply_watcher_event(&watcher::Event::Apply(object));
        }
    }

    #[tokio::test]
    async fn keys_are_requested_at_first_and_after_changes() {
        let (cache, watches) = new();
        let keys = || vec![ObjectKey::new("a", "x"), ObjectKey::new("a", "y")];
        let mut requests = std::pin::pin!(cache.requests(keys));
        for expected in ["x", "y"] {
            assert_eq!(requests.next().await.unwrap().name, expected);
        }
        let mut next = requests.next();
        assert!(futures::FutureExt::now_or_never(&mut next).is_none());
        watches.changed.send_modify(|count| *count += 1);
        assert_eq!(next.await.unwrap().name, "x");
    }
}
