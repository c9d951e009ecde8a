//! Proof that an object belongs to the HostedCluster: a deletion writes and deletes only such objects.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use support::apply::{Part, merge};
use support::reconcile::is_missing;

use super::Waiting;
use crate::context::Context;
use crate::control_plane_namespace::{ControlPlaneNamespace, Namespace, owner};
use crate::error::Error;
use crate::names::FIELD_MANAGER;

/// The proof that an object is the cluster's, and the object as it was read.
pub(super) struct Own {
    resource: ApiResource,
    metadata: ObjectMeta,
    pub(super) data: Value,
}

// === impl Own ===

impl Own {
    /// An object of the control plane's namespace.
    pub(super) fn inside(
        namespace: &Namespace,
        resource: &ApiResource,
        object: DynamicObject,
        cluster: &str,
    ) -> Option<Self> {
        let is_own = namespace.has(cluster, &object.metadata);
        is_own.then(|| Self::of_cluster(resource, object))
    }

    /// An object of another namespace, or cluster-scoped: its annotation has to name the cluster.
    pub(super) fn annotated(
        resource: &ApiResource,
        object: DynamicObject,
        cluster: &str,
    ) -> Option<Self> {
        let is_own = owner(&object.metadata) == Some(cluster);
        is_own.then(|| Self::of_cluster(resource, object))
    }

    /// The HostedCluster itself, or an object beside it that names it in its specification.
    pub(super) fn of_cluster(resource: &ApiResource, object: DynamicObject) -> Self {
        Self {
            resource: resource.clone(),
            metadata: object.metadata,
            data: object.data,
        }
    }

    /// The namespace of its control plane.
    pub(super) fn namespace(owned: &ControlPlaneNamespace) -> Self {
        Self {
            resource: ApiResource::erase::<v1::Namespace>(&()),
            metadata: owned.metadata(),
            data: Value::Null,
        }
    }

    pub(super) fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Deletes the object if it has not been deleted and has not changed since it was read. Returns what is waited for.
    pub(super) async fn delete(&self, ctx: &Context) -> Result<Option<Waiting>, Error> {
        let waiting = Waiting::of(&self.resource.kind, &self.metadata);
        if self.metadata.deletion_timestamp.is_some() {
            return Ok(Some(waiting));
        }
        match support::apply::delete(&self.api(ctx), &self.metadata).await {
            Ok(()) => Ok(Some(waiting)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(source) => Err(Error::Delete {
                object: self.to_string(),
                source,
            }),
        }
    }

    /// Removes a finalizer, if it is still the object that was read.
    pub(super) async fn drop_finalizer(&self, finalizer: &str, ctx: &Context) -> Result<(), Error> {
        let found = self.metadata.finalizers.as_deref().unwrap_or_default();
        if found.iter().all(|it| it != finalizer) {
            return Ok(());
        }
        let kept: Vec<_> = found.iter().filter(|it| *it != finalizer).collect();
        let patch = json!({ "metadata": { "finalizers": kept } });
        self.merge(&patch, ctx).await
    }

    /// Changes it, if it is still as it was read.
    pub(super) async fn merge(&self, patch: &Value, ctx: &Context) -> Result<(), Error> {
        let (api, patch) = (self.api(ctx), patch.clone());
        let merged = merge(&api, &self.metadata, Part::Main, patch, FIELD_MANAGER).await;
        merged.map_err(|source| Error::Write {
            object: self.to_string(),
            source,
        })
    }

    fn api(&self, ctx: &Context) -> Api<DynamicObject> {
        api(&self.resource, self.metadata.namespace.as_deref(), ctx)
    }
}

impl std::fmt::Display for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.resource.kind)?;
        if let Some(namespace) = &self.metadata.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.metadata.name.as_deref().unwrap_or_default())
    }
}

/// Objects of a kind, in a namespace or in none.
pub(super) fn api(
    resource: &ApiResource,
    namespace: Option<&str>,
    ctx: &Context,
) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(ctx.client.clone(), namespace, resource),
        None => Api::all_with(ctx.client.clone(), resource),
    }
}
