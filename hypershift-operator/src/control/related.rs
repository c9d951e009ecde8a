//! What belongs to hosted clusters: when it changes, its cluster is looked at.
//!
//! Only metadata is watched, and only of what carries this operator's label; nothing is kept.

use api::hypershift::v1beta1::HostedControlPlane;
use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use ownership::Scope;
use support::controller::ObjectKey;
use support::error::chain;
use support::reconcile::Backoff;

use crate::capi::Capi;
use crate::hosted_cluster::Id;
use crate::hosted_cluster::names::{CLUSTER, MANAGED_BY, OPERATOR};
use crate::watches;

/// The kinds, one a line.
fn kinds(scope: Scope) -> Vec<ApiResource> {
    let mut kinds = vec![
        ApiResource::erase::<ClusterRoleBinding>(&()),
        ApiResource::erase::<ConfigMap>(&()),
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<HostedControlPlane>(&()),
        ApiResource::erase::<Namespace>(&()),
        ApiResource::erase::<NetworkPolicy>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<Secret>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
    ];
    kinds.extend(scope.sides().iter().map(|&side| Capi::new(side).cluster()));
    kinds
}

/// The clusters to be looked at.
pub(super) fn watch(client: &kube::Client, scope: Scope) -> impl Stream<Item = ObjectKey> + use<> {
    let watches = kinds(scope)
        .into_iter()
        .map(|kind| one(client, kind).boxed());
    stream::select_all(watches)
}

fn one(client: &kube::Client, kind: ApiResource) -> impl Stream<Item = ObjectKey> + use<> {
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client.clone(), &kind);
    let config = watches::config().labels(&format!("{MANAGED_BY}={OPERATOR}"));
    let events = watcher(api, config).backoff(Backoff::default());
    events.touched_objects().filter_map(move |event| {
        let request = match event {
            Ok(object) => cluster_of(&object).map(|id| ObjectKey::new(id.namespace, id.name)),
            Err(error) => {
                // A kind without a CRD, or a right that is missing: the reconciliation that needs it tells.
                let error = chain(&error);
                tracing::debug!(kind = kind.kind, error, "Failed to watch");
                None
            }
        };
        std::future::ready(request)
    })
}

/// The cluster that an object belongs to.
fn cluster_of(object: &PartialObjectMeta<DynamicObject>) -> Option<Id> {
    let annotations = object.metadata.annotations.as_ref()?;
    let (namespace, name) = annotations.get(CLUSTER)?.split_once('/')?;
    Some(Id {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_lead_to_their_cluster() {
        for (annotations, expected) in [
            (json!({ CLUSTER: "clusters/one" }), Some("clusters/one")),
            (json!({ CLUSTER: "clusters" }), None),
            (json!({}), None),
        ] {
            let object = json!({ "metadata": { "name": "x", "annotations": annotations } });
            let object = serde_json::from_value(object).unwrap();
            assert_eq!(
                cluster_of(&object).map(|id| id.to_string()).as_deref(),
                expected
            );
        }
    }
}
