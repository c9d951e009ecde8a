//! Requests of reconciles: AWSEndpointServices that have changed, and all of them when the control plane has.

use api::hypershift::v1beta1::AwsEndpointService;
use futures::{Stream, StreamExt as _, stream};
use kube::Api;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt as _, watcher};
use support::controller::ObjectKey;
use support::reconcile::Backoff;
use tokio::sync::watch;

use super::objects::LINKS;

/// All of them. The writer gets what is watched.
pub(super) fn all(
    client: &kube::Client,
    namespace: &str,
    writer: Writer<AwsEndpointService>,
    changes: watch::Receiver<u64>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    stream::select(
        watched(client, namespace, writer).boxed(),
        changed(changes, namespace).boxed(),
    )
}

/// The AWSEndpointServices that have changed.
fn watched(
    client: &kube::Client,
    namespace: &str,
    writer: Writer<AwsEndpointService>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let api: Api<AwsEndpointService> = Api::namespaced(client.clone(), namespace);
    watcher(api, watcher::Config::default())
        .backoff(Backoff::default())
        .reflect(writer)
        .touched_objects()
        .filter_map(|found| std::future::ready(found.ok().map(|it| ObjectKey::of(&it.metadata))))
}

/// All that there may be, now and after each change of the control plane.
fn changed(
    changes: watch::Receiver<u64>,
    namespace: &str,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let keys = LINKS.map(|name| ObjectKey::new(namespace, name));
    let first = stream::iter(keys.clone());
    let later = stream::unfold((changes, keys), |(mut changes, keys)| async move {
        changes.changed().await.ok()?;
        Some((stream::iter(keys.clone()), (changes, keys)))
    });
    first.chain(later.flatten())
}
