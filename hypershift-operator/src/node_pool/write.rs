//! Applies the plan in order: objects before their references, and pruning last.

mod boot_image;
mod config_maps;
mod hold;
mod machines;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::annotations::node_pool::{NODE_POOL, TOKEN_EXPIRATION};
use api::hypershift::v1beta1::node_pool::{NodePool, NodePoolStatus};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use support::apply::{self, Applier, Memory};
use support::reconcile::is_missing;

use super::error::Error;
use super::facts::Facts;
use super::observed::Workload;
use super::plan::{Plan, Token};
use super::secrets::{self, Outdated};
use super::workload::PAUSED;
use crate::cache::Cache;
use crate::control_plane_namespace::{ControlPlaneNamespace, Namespace};
use crate::names::node_pool as names;

/// Field manager of objects that each reconcile applies.
const MANAGER: &str = "hypershift-operator-nodepool";
/// Field manager of fields that are written once, and that another controller owns from then on.
const ONCE: &str = "hypershift-operator-nodepool-once";
/// Field manager of the replicas, which the autoscaler takes over.
const SCALE: &str = "hypershift-operator-nodepool-scale";
/// The finalizer of a NodePool: it is removed after its machines.
pub(crate) const FINALIZER: &str = "hypershift.openshift.io/finalizer";

/// Writes the objects of NodePools.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) applier: Applier,
    scaler: Applier,
}

// === impl Writer ===

impl Writer {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self {
            applier: Applier::new(client.clone(), MANAGER),
            scaler: Applier::new(client, SCALE),
        }
    }

    /// Skips requests that the memory makes unnecessary.
    pub(crate) fn with_memory(self, memory: &Arc<Cache>) -> Self {
        Self {
            applier: self
                .applier
                .with_memory(Arc::clone(memory) as Arc<dyn Memory>),
            scaler: self
                .scaler
                .with_memory(Arc::clone(memory) as Arc<dyn Memory>),
        }
    }

    /// Adds the finalizer, and the HostedCluster as owner.
    pub(crate) async fn ensure_finalizer(&self, facts: &Facts) -> Result<(), Error> {
        let pool = &facts.pool;
        let metadata = &pool.metadata;
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        let mut owners = metadata.owner_references.clone().unwrap_or_default();
        let (has_finalizer, uid) = (
            finalizers.iter().any(|it| it == FINALIZER),
            facts.cluster.metadata.uid.clone(),
        );
        let owned = owners.iter().any(|it| Some(&it.uid) == uid.as_ref());
        if has_finalizer && owned {
            return Ok(());
        }
        if !has_finalizer {
            finalizers.push(FINALIZER.to_owned());
        }
        if !owned {
            owners.extend(facts.cluster.owner_ref(&()));
        }
        let change = json!({ "finalizers": finalizers, "ownerReferences": owners });
        self.change_pool(pool, change).await
    }

    /// Removes the finalizer.
    pub(crate) async fn release(&self, pool: &NodePool) -> Result<(), Error> {
        let mut finalizers = pool.metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|it| it != FINALIZER);
        match self
            .change_pool(pool, json!({ "finalizers": finalizers }))
            .await
        {
            Err(Error::Write { source, .. }) if is_missing(&source) => Ok(()),
            done => done,
        }
    }

    /// Records what the nodes run, in annotations of the NodePool.
    pub(crate) async fn remember(
        &self,
        pool: &NodePool,
        annotations: &BTreeMap<&str, String>,
    ) -> Result<(), Error> {
        if annotations.is_empty() {
            return Ok(());
        }
        let api: Api<NodePool> = self.pools(pool);
        let name = names::of(pool);
        let patch = json!({ "metadata": { "uid": pool.metadata.uid, "annotations": annotations } });
        let params = params(MANAGER);
        let written = api
            .patch_metadata(name, &params, &Patch::Merge(&patch))
            .await;
        written
            .map(drop)
            .map_err(Error::write(format!("NodePool {}", names::reference(pool))))
    }

    /// Updates the status of the NodePool.
    pub(crate) async fn status(
        &self,
        pool: &NodePool,
        status: &NodePoolStatus,
    ) -> Result<(), Error> {
        let metadata = json!({ "namespace": pool.metadata.namespace, "name": pool.metadata.name });
        let desired = json!({ "metadata": metadata, "status": status });
        self.applier
            .ensure_status(&ApiResource::erase::<NodePool>(&()), desired)
            .await?;
        Ok(())
    }

    /// Pauses Cluster API, and changes nothing else.
    pub(crate) async fn pause(
        &self,
        namespace: &ControlPlaneNamespace,
        kind: &ApiResource,
        workload: &Workload,
    ) -> Result<(), Error> {
        let metadata = json!({ "uid": workload.uid, "annotations": { PAUSED: "true" } });
        self.change(kind, namespace, &workload.name, metadata).await
    }

    /// Resumes Cluster API for the workload with this UID.
    pub(crate) async fn resume(
        &self,
        kind: &ApiResource,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<(), Error> {
        let metadata = json!({ "uid": uid, "annotations": { PAUSED: null } });
        self.change(kind, namespace, name, metadata).await
    }

    async fn change(
        &self,
        kind: &ApiResource,
        namespace: &str,
        name: &str,
        metadata: Value,
    ) -> Result<(), Error> {
        let patch = json!({ "metadata": metadata });
        self.patch(kind, namespace, name, &patch).await
    }

    /// Applies the plan.
    pub(crate) async fn apply(
        &self,
        namespace: &ControlPlaneNamespace,
        facts: &Facts,
        plan: &Plan,
    ) -> Result<(), Error> {
        self.token(facts, &plan.token).await?;
        self.applier.ensure(&plan.user_data).await?;
        let namespace = &Namespace::Owned(namespace.clone());
        if let Some(machines) = &plan.machines {
            self.machines(namespace, facts, machines).await?;
        }
        self.expire(namespace, &facts.pool, &plan.outdated_tokens)
            .await?;
        let secret = ApiResource::erase::<Secret>(&());
        for name in &plan.outdated_user_data {
            self.delete(namespace, &facts.pool, &secret, name).await?;
        }
        self.tuning(namespace, facts, &plan.tuning).await
    }

    /// Deletes an object of the control plane namespace, if it is the NodePool's. Returns its metadata if it existed.
    pub(crate) async fn delete(
        &self,
        namespace: &Namespace,
        pool: &NodePool,
        kind: &ApiResource,
        name: &str,
    ) -> Result<Option<ObjectMeta>, Error> {
        let Some(metadata) = self.find(namespace, pool, kind, name).await? else {
            return Ok(None);
        };
        if metadata.deletion_timestamp.is_some() {
            return Ok(Some(metadata));
        }
        let api = self.objects(kind, namespace.name());
        match apply::delete(&api, &metadata).await {
            Ok(()) => Ok(Some(metadata)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(source) => {
                let place = namespace.name();
                Err(Error::write(format!("{} {place}/{name}", kind.kind))(
                    source,
                ))
            }
        }
    }

    /// The metadata of an object of the control plane namespace, if it exists and is the NodePool's.
    pub(crate) async fn find(
        &self,
        namespace: &Namespace,
        pool: &NodePool,
        kind: &ApiResource,
        name: &str,
    ) -> Result<Option<ObjectMeta>, Error> {
        let found = match self
            .objects(kind, namespace.name())
            .get_metadata_opt(name)
            .await
        {
            Ok(found) => found,
            Err(error) if is_missing(&error) => None,
            Err(source) => return Err(Error::read(format!("{} {name}", kind.kind))(source)),
        };
        let found = found.map(|found| found.metadata);
        Ok(found.filter(|it| is_own(namespace, it, pool)))
    }

    fn objects(&self, kind: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.applier.client().clone(), namespace, kind)
    }

    /// A new token Secret is created with its data, which the ignition server owns from then on: only the rest is applied.
    async fn token(&self, facts: &Facts, token: &Token) -> Result<(), Error> {
        let metadata = match token {
            Token::Known(secret) => secret.clone(),
            Token::New(secret) => {
                self.create(&facts.namespace, secret).await?;
                secrets::without_token(secret.clone())
            }
        };
        self.applier.ensure(&metadata).await?;
        Ok(())
    }

    async fn create(&self, namespace: &str, secret: &Secret) -> Result<(), Error> {
        let api: Api<Secret> = Api::namespaced(self.applier.client().clone(), namespace);
        let params = PostParams {
            field_manager: Some(ONCE.to_owned()),
            ..PostParams::default()
        };
        let name = secret.metadata.name.clone().unwrap_or_default();
        let created = api.create(&params, secret).await;
        created
            .map(drop)
            .map_err(Error::write(format!("Secret {namespace}/{name}")))
    }

    async fn expire(
        &self,
        place: &Namespace,
        pool: &NodePool,
        tokens: &[(Secret, Outdated)],
    ) -> Result<(), Error> {
        let kind = ApiResource::erase::<Secret>(&());
        for (secret, what) in tokens {
            let metadata = &secret.metadata;
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            let name = metadata.name.as_deref().unwrap_or_default();
            match what {
                Outdated::Keep => {}
                Outdated::Delete => {
                    self.delete(place, pool, &kind, name).await?;
                }
                Outdated::Expire(time) => {
                    let api: Api<Secret> =
                        Api::namespaced(self.applier.client().clone(), namespace);
                    let annotations = BTreeMap::from([(TOKEN_EXPIRATION.key(), time.as_str())]);
                    let written = apply::annotate(&api, metadata, &annotations, ONCE).await;
                    written.map_err(Error::write(format!("Secret {namespace}/{name}")))?;
                }
            }
        }
        Ok(())
    }

    /// Patches an object, unless it was deleted. The API server rejects the UID of another object.
    async fn patch(
        &self,
        kind: &ApiResource,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), Error> {
        let client = self.applier.client().clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, kind);
        match api.patch(name, &params(ONCE), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(source) => Err(Error::write(format!("{} {namespace}/{name}", kind.kind))(
                source,
            )),
        }
    }

    /// Patches the metadata of the NodePool, if it has not changed since it was read.
    async fn change_pool(&self, pool: &NodePool, change: Value) -> Result<(), Error> {
        let mut metadata = change;
        metadata["uid"] = json!(pool.metadata.uid);
        metadata["resourceVersion"] = json!(pool.metadata.resource_version);
        let patch = json!({ "metadata": metadata });
        let api = self.pools(pool);
        let written = api
            .patch_metadata(names::of(pool), &params(MANAGER), &Patch::Merge(&patch))
            .await;
        written
            .map(drop)
            .map_err(Error::write(format!("NodePool {}", names::reference(pool))))
    }

    fn pools(&self, pool: &NodePool) -> Api<NodePool> {
        let namespace = pool.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(self.applier.client().clone(), namespace)
    }
}

fn params(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// Whether an object of a control plane namespace is this NodePool's, by its annotation. An object without the annotation
/// counts by its name if the NodePool's cluster owns the namespace: earlier versions did not annotate some kinds.
pub(crate) fn is_own(namespace: &Namespace, object: &ObjectMeta, pool: &NodePool) -> bool {
    let annotations = object.annotations.as_ref();
    let named = annotations.and_then(|it| it.get(NODE_POOL.key()));
    named.map_or(namespace.owned().is_some(), |it| {
        *it == names::reference(pool)
    })
}

/// Whether these annotations name this NodePool.
pub(crate) fn belongs(annotations: &BTreeMap<String, String>, pool: &NodePool) -> bool {
    annotations.get(NODE_POOL.key()) == Some(&names::reference(pool))
}

#[cfg(test)]
mod tests;
