//! Objects that belong to HostedClusters: a change of one requests a reconcile of its HostedCluster.
//!
//! Only metadata is watched, and only of objects with this operator's label or a fixed name. Only versions are stored,
//! and the owners of Namespaces.

use api::hypershift::v1beta1::HostedControlPlane;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher;
use std::sync::Arc;
use support::controller::ObjectKey;
use support::error::chain;

use crate::cache::{self, LABELLED, NamespaceMeta};
use crate::context::Context;
use crate::kinds;
use crate::names::{CLUSTER, MANAGED_BY, OPERATOR};
use crate::watches::{self, Lenient};

/// The name of the ignition server's objects.
const IGNITION: &str = "ignition-server";

/// A kind, and which of its objects are watched.
struct Watched {
    name: &'static str,
    kind: ApiResource,
    which: Which,
}

/// Which objects of a kind are watched.
enum Which {
    /// Those with this operator's label.
    Labelled,
    /// Those with this name, in all namespaces.
    Named(&'static str),
    /// The object with this namespace and name.
    One(String, String),
}

/// All watches.
fn watched(ctx: &Context) -> Vec<Watched> {
    let labelled = [
        ApiResource::erase::<ClusterRoleBinding>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<HostedControlPlane>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<ClusterRole>(&()),
    ];
    let labelled = LABELLED.into_iter().zip(labelled);
    let mut all: Vec<_> = labelled
        .map(|(name, kind)| Watched::new(name, kind, Which::Labelled))
        .collect();
    let deployment = ApiResource::erase::<Deployment>(&());
    let service = ApiResource::erase::<Service>(&());
    let proxy = Which::Named("ignition-server-proxy");
    let api_server = Which::One("default".to_owned(), "kubernetes".to_owned());
    let legacy = ctx.legacy_deployment.clone();
    all.extend([
        Watched::new(
            cache::IGNITION_DEPLOYMENTS,
            deployment.clone(),
            Which::Named(IGNITION),
        ),
        Watched::new(
            cache::IGNITION_SERVICES,
            service.clone(),
            Which::Named(IGNITION),
        ),
        Watched::new(cache::IGNITION_PROXIES, service, proxy),
        Watched::new(
            cache::IGNITION_ROUTES,
            kinds::route(),
            Which::Named(IGNITION),
        ),
        Watched::new(
            cache::API_SERVER,
            ApiResource::erase::<Endpoints>(&()),
            api_server,
        ),
        Watched::new(
            cache::LEGACY,
            deployment,
            Which::One(legacy.namespace, legacy.name),
        ),
    ]);
    all
}

/// The HostedClusters whose objects have changed.
pub(super) fn watch(
    ctx: &Arc<Context>,
    writer: Writer<NamespaceMeta>,
) -> impl Stream<Item = ObjectKey> + use<> {
    let watches = watched(ctx).into_iter();
    let watches = watches.map(|watched| watched.watch(ctx).boxed());
    let namespaces = namespaces(ctx, writer).boxed();
    stream::select_all(watches.chain([namespaces]))
}

/// All Namespaces: one without an owner blocks a HostedCluster, and annotations of agent namespaces grant access to them.
fn namespaces(
    ctx: &Arc<Context>,
    writer: Writer<NamespaceMeta>,
) -> impl Stream<Item = ObjectKey> + use<> {
    let api: Api<Lenient<NamespaceMeta>> = Api::all(ctx.client.clone());
    let ctx = Arc::clone(ctx);
    watches::readable(watches::watch(api, watches::checked(watches::config())))
        .modify(slim)
        .reflect(writer)
        .inspect(move |event| {
            ctx.cache.index.observe(cache::NAMESPACES, event);
            ctx.cache.notify_changed();
        })
        .touched_objects()
        .filter_map(|event| {
            let request = event.map(|it| cache::owner(&it.metadata, cache::NAMESPACES));
            std::future::ready(request.ok().flatten())
        })
}

/// Trims a Namespace to its owner. Namespaces are indexed as if they were in themselves.
fn slim(namespace: &mut NamespaceMeta) {
    let metadata = &mut namespace.metadata;
    metadata.managed_fields = None;
    metadata.labels = None;
    metadata.namespace.clone_from(&metadata.name);
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| key == CLUSTER);
    }
}

// === impl Watched ===

impl Watched {
    fn new(name: &'static str, kind: ApiResource, which: Which) -> Self {
        Self { name, kind, which }
    }

    fn watch(self, ctx: &Arc<Context>) -> impl Stream<Item = ObjectKey> + use<> {
        let Self { name, kind, which } = self;
        let client = ctx.client.clone();
        let (api, config) = match which {
            Which::Labelled => {
                let config = watches::config().labels(&format!("{MANAGED_BY}={OPERATOR}"));
                (Api::all_with(client, &kind), config)
            }
            Which::Named(name) => (Api::all_with(client, &kind), named(name)),
            Which::One(namespace, name) => {
                let api = Api::namespaced_with(client, &namespace, &kind);
                (api, named(&name))
            }
        };
        let api: Api<Lenient<PartialObjectMeta<DynamicObject>>> = api;
        let ctx = Arc::clone(ctx);
        watches::readable(watches::watch_optional(api, config, ctx.cache.crds()))
            .inspect(move |event| {
                ctx.cache.index.observe(name, event);
                if name == cache::LEGACY && event.is_ok() {
                    ctx.cache.notify_changed();
                }
            })
            .touched_objects()
            .filter_map(move |event| {
                let request = match event {
                    Ok(object) => cache::owner(&object.metadata, name),
                    Err(error) => {
                        // The kind has no CRD, or a permission is missing: the reconcile that needs it reports that.
                        let error = chain(&error);
                        tracing::debug!(kind = kind.kind, error, "Failed to watch");
                        None
                    }
                };
                std::future::ready(request)
            })
    }
}

fn named(name: &str) -> watcher::Config {
    watches::config().fields(&format!("metadata.name={name}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Check T01: a tenant can give an object the operator's label and the annotation of another cluster.
    #[test]
    fn objects_map_to_their_hosted_cluster() {
        let [deployments, role_bindings] = [LABELLED[1], LABELLED[4]];
        let one = Some("clusters/one");
        for (watch, namespace, annotations, expected) in [
            (
                deployments,
                "clusters-one",
                json!({ CLUSTER: "clusters/one" }),
                one,
            ),
            (
                deployments,
                "other",
                json!({ CLUSTER: "clusters/one" }),
                None,
            ),
            (
                role_bindings,
                "agents",
                json!({ CLUSTER: "clusters/one" }),
                one,
            ),
            (
                cache::NAMESPACES,
                "clusters-one",
                json!({ CLUSTER: "clusters/one" }),
                one,
            ),
            (
                cache::NAMESPACES,
                "other",
                json!({ CLUSTER: "clusters/one" }),
                None,
            ),
            (
                deployments,
                "clusters-one",
                json!({ CLUSTER: "clusters" }),
                None,
            ),
            (deployments, "clusters-one", json!({}), None),
        ] {
            let metadata =
                json!({ "name": "x", "namespace": namespace, "annotations": annotations });
            let metadata = serde_json::from_value(metadata).unwrap();
            let found = cache::owner(&metadata, watch);
            assert_eq!(
                found.map(|id| id.to_string()).as_deref(),
                expected,
                "{watch}"
            );
        }
    }

    #[test]
    fn a_namespace_is_indexed_in_itself_and_keeps_its_owner() {
        let object = json!({ "metadata": {
            "name": "clusters-one", "labels": { "a": "b" }, "annotations": { CLUSTER: "clusters/one", "a": "b" },
        } });
        let mut namespace: NamespaceMeta = serde_json::from_value(object).unwrap();
        slim(&mut namespace);
        let kept = json!({
            "name": "clusters-one", "namespace": "clusters-one", "annotations": { CLUSTER: "clusters/one" },
        });
        assert_eq!(json!(namespace.metadata), kept);
    }
}
