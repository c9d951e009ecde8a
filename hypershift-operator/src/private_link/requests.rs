//! Requests of reconciles: the links that have changed, and those whose namespace, HostedCluster or NodePools have.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::api::DynamicObject;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use kube::runtime::{PredicateConfig, WatchStreamExt as _};
use kube::{Api, ResourceExt as _};
use support::controller::ObjectKey;
use support::error::chain;
use tokio::time::sleep;

use super::control::Kind;
use super::inputs;
use crate::cache;
use crate::context::Context;
use crate::watches::{self, Lenient};

/// HostedClusters and NodePools change together.
const DEBOUNCE: Duration = Duration::from_secs(1);

/// All of them. The writer gets what is watched.
pub(super) fn all(
    ctx: &Arc<Context>,
    kind: &'static Kind,
    writer: Writer<DynamicObject>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let changed = of_clusters(ctx, writer.as_reader());
    stream::select(watch(ctx, kind, writer).boxed(), changed.boxed())
}

/// The links of which something has changed that is read.
fn watch(
    ctx: &Arc<Context>,
    kind: &'static Kind,
    writer: Writer<DynamicObject>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let api: Api<Lenient<DynamicObject>> = Api::all_with(ctx.client.clone(), &(kind.resource)());
    let ctx = Arc::clone(ctx);
    let events = watches::watch_optional(api, watches::config(), ctx.cache.crds());
    let events = watches::readable(events)
        .modify(|found| found.metadata.managed_fields = None)
        .reflect(writer)
        .inspect(move |event| ctx.cache.see(kind.watch, event))
        .touched_objects()
        .predicate_filter(
            move |found: &DynamicObject| Some(digest(found, kind.recorded)),
            PredicateConfig::default(),
        );
    events.filter_map(move |event| {
        let key = event.map(|found| ObjectKey::of(&found.metadata));
        let key = key.inspect_err(|error| {
            tracing::debug!(kind = kind.name, error = chain(error), "Failed to watch");
        });
        std::future::ready(key.ok())
    })
}

/// A hash of what a reconcile reads. Conditions do not change it.
fn digest(found: &DynamicObject, recorded: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let metadata = &found.metadata;
    metadata.uid.hash(&mut hasher);
    metadata.generation.hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    metadata.annotations.hash(&mut hasher);
    metadata.finalizers.hash(&mut hasher);
    for field in recorded {
        found.data["status"][*field].as_str().hash(&mut hasher);
    }
    hasher.finish()
}

/// The links whose HostedCluster has changed, or its NodePools, and those whose namespace is seen for the first time.
fn of_clusters(
    ctx: &Arc<Context>,
    store: Store<DynamicObject>,
) -> impl Stream<Item = ObjectKey> + Send + use<> {
    let changes = ctx.cache.changes();
    let state = (changes, Arc::clone(ctx), store, BTreeMap::new());
    let keys = stream::unfold(state, |(mut changes, ctx, store, before)| async move {
        // It fails only when the term is over.
        changes.changed().await.ok()?;
        sleep(DEBOUNCE).await;
        changes.mark_unchanged();
        let now = versions(&ctx, &store);
        let others = now
            .iter()
            .filter(|(key, version)| before.get(*key) != Some(*version));
        let others: Vec<_> = others.map(|(key, _)| key.clone()).collect();
        Some((stream::iter(others), (changes, ctx, store, now)))
    });
    keys.flatten()
}

/// A version of what is read of the HostedCluster and of its NodePools, for each link.
fn versions(ctx: &Context, store: &Store<DynamicObject>) -> BTreeMap<ObjectKey, u64> {
    let links = store.state();
    let links = links.iter().filter_map(|link| {
        let cluster = inputs::id(link, ctx)?;
        Some((ObjectKey::of(&link.metadata), cache::key(&cluster)))
    });
    let links: Vec<_> = links.collect();
    let mut clusters: BTreeMap<_, _> = links
        .iter()
        .map(|(_, cluster)| (cluster.clone(), DefaultHasher::new()))
        .collect();
    if clusters.is_empty() {
        return BTreeMap::new();
    }
    let stores = &ctx.cache.stores;
    let pools = stores.pools.state();
    let mut pools: Vec<_> = pools.iter().collect();
    pools.sort_by_key(|pool| ObjectKey::of(&pool.metadata));
    let pools = pools.into_iter().map(|pool| {
        let name = pool.data["spec"]["clusterName"]
            .as_str()
            .unwrap_or_default();
        (
            ObjectKey::new(pool.namespace().unwrap_or_default(), name),
            &pool.metadata,
        )
    });
    let found = stores.clusters.state();
    let found = found
        .iter()
        .map(|it| (ObjectKey::of(&it.metadata), &it.metadata));
    for (cluster, metadata) in found.chain(pools) {
        if let Some(hasher) = clusters.get_mut(&cluster) {
            metadata.uid.hash(hasher);
            metadata.generation.hash(hasher);
        }
    }
    let versions = links.into_iter().filter_map(|(link, cluster)| {
        let version = clusters.get(&cluster)?.finish();
        Some((link, version))
    });
    versions.collect()
}
