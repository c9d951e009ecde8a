//! Requests of reconciles: links that have changed, and all of them when the control plane has.

use futures::{Stream, StreamExt as _, stream};
use kube::Api;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt as _, watcher};
use support::controller::ObjectKey;
use support::reconcile::Backoff;
use tokio::sync::watch;

use super::provider::Kind;

/// All of them. The writer gets what is watched. The Services have the names that links may have.
pub(super) fn all<K: Kind>(
    client: &kube::Client,
    namespace: &str,
    writer: Writer<K>,
    changes: watch::Receiver<u64>,
    services: &'static [&'static str],
) -> impl Stream<Item = ObjectKey> + Send + use<K> {
    stream::select(
        watched(client, namespace, writer).boxed(),
        changed(changes, namespace, services).boxed(),
    )
}

/// The links that have changed.
fn watched<K: Kind>(
    client: &kube::Client,
    namespace: &str,
    writer: Writer<K>,
) -> impl Stream<Item = ObjectKey> + Send + use<K> {
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .reflect(writer)
        .touched_objects()
        .filter_map(|found| std::future::ready(found.ok().map(|it| ObjectKey::of(it.meta()))))
}

/// All that there may be, now and after each change of the control plane.
fn changed(
    changes: watch::Receiver<u64>,
    namespace: &str,
    services: &'static [&'static str],
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let keys = services.iter().map(|name| ObjectKey::new(namespace, *name));
    let keys: Vec<_> = keys.collect();
    let first = stream::iter(keys.clone());
    let later = stream::unfold((changes, keys), |(mut changes, keys)| async move {
        changes.changed().await.ok()?;
        Some((stream::iter(keys.clone()), (changes, keys)))
    });
    first.chain(later.flatten())
}
