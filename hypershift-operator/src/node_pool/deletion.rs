//! Deletes a pool: first workloads and health checks, then the machines, then their templates and Secrets, and the pool
//! last. While it waits, a condition has the reason.

use std::time::Duration;

use api::conditions::{PoolCondition, Status};
use api::group::CapiTypes;
use api::hypershift::v1beta1::node_pool::NodePool;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use support::reconcile::is_missing;

use super::conditions::Conditions;
use super::error::Error;
use super::observed::Machine;
use super::workload::PAUSED;
use super::write::{Writer, belongs};
use super::{boot_image, health_check};
use crate::capi::Capi;
use crate::control_plane_namespace::Namespace;
use crate::names::{LONGEST_LABEL, node_pool as names};
use crate::platform::machines;

/// The requeue interval.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How many are named in a message.
const MAX_LISTED: usize = 5;
/// Objects of a pool other than Secrets.
const POOL_LABEL: &str = "hypershift.openshift.io/nodePool";

/// Deletes the objects of a pool of these types; returns the requeue interval, and `None` when all are deleted.
pub(crate) async fn delete(
    pool: &NodePool,
    all_types: &[CapiTypes],
    namespace: &Namespace,
    writer: &Writer,
) -> Result<Option<Duration>, Error> {
    let mut waits = Vec::new();
    for types in all_types {
        let remover = Remover {
            pool,
            capi: Capi::new(*types),
            namespace,
            writer,
        };
        waits.extend(remover.workloads().await?);
        waits.extend(remover.machines().await?);
    }
    if !waits.is_empty() {
        explain(pool, "Deleting", message(&waits), writer).await?;
        return Ok(Some(POLL_INTERVAL));
    }
    for types in all_types {
        let remover = Remover {
            pool,
            capi: Capi::new(*types),
            namespace,
            writer,
        };
        remover.templates().await?;
    }
    secrets(pool, namespace, writer).await?;
    boot_image::delete(pool, namespace, writer).await?;
    config_maps(pool, namespace, writer).await?;
    writer.release(pool).await?;
    Ok(None)
}

/// The objects of a deleted pool, of one type.
struct Remover<'a> {
    pool: &'a NodePool,
    capi: Capi,
    namespace: &'a Namespace,
    writer: &'a Writer,
}

// === impl Remover ===

impl Remover<'_> {
    /// Deletes health checks before workloads. Returns what is waited for.
    async fn workloads(&self) -> Result<Vec<String>, Error> {
        let name = names::of(self.pool);
        let check = self.capi.machine_health_check();
        let [first, second] = health_check::all_names(name);
        let mut waits = Vec::new();
        for (kind, name) in [
            (&check, first.as_str()),
            (&check, second.as_str()),
            (&self.capi.machine_deployment(), name),
            (&self.capi.machine_set(), name),
        ] {
            self.resume(kind, name).await?;
            let deleted = self.writer.delete(self.namespace, self.pool, kind, name);
            if let Some(metadata) = deleted.await? {
                let finalizers = metadata.finalizers.unwrap_or_default();
                waits.push(wait(&kind.kind, name, &finalizers));
            }
        }
        Ok(waits)
    }

    /// Cluster API does not even delete what is paused.
    async fn resume(&self, kind: &ApiResource, name: &str) -> Result<(), Error> {
        let found = self.writer.find(self.namespace, self.pool, kind, name);
        let Some(found) = found.await? else {
            return Ok(());
        };
        if !found.annotations.iter().any(|it| it.contains_key(PAUSED)) {
            return Ok(());
        }
        let (namespace, uid) = (self.namespace.name(), found.uid.as_deref());
        self.writer.resume(kind, namespace, name, uid).await
    }

    /// The machines that are left.
    async fn machines(&self) -> Result<Vec<String>, Error> {
        let machines = self.list(&self.capi.machine()).await?;
        let machines = machines.iter().map(Machine::read);
        Ok(machines
            .map(|it| wait("Machine", &it.name, &it.finalizers))
            .collect())
    }

    async fn templates(&self) -> Result<(), Error> {
        let Some(kind) = machines::template_kind(self.capi, self.pool.spec.platform.type_) else {
            return Ok(());
        };
        for template in self.list(&kind).await? {
            let name = template.name_any();
            self.writer
                .delete(self.namespace, self.pool, &kind, &name)
                .await?;
        }
        Ok(())
    }

    /// The objects of a kind that belong to the pool. None if the kind is not served.
    async fn list(&self, kind: &ApiResource) -> Result<Vec<DynamicObject>, Error> {
        match self.api(kind).list(&ListParams::default()).await {
            Ok(listed) => Ok(listed
                .items
                .into_iter()
                .filter(|it| belongs(it.annotations(), self.pool))
                .collect()),
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(source) => Err(Error::read(format!(
                "{} in {}",
                kind.plural,
                self.namespace.name()
            ))(source)),
        }
    }

    fn api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        let client = self.writer.applier.client().clone();
        Api::namespaced_with(client, self.namespace.name(), kind)
    }
}

async fn secrets(pool: &NodePool, namespace: &Namespace, writer: &Writer) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(writer.applier.client().clone(), namespace.name());
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(Error::read(format!("Secrets of {}", namespace.name())))?;
    let kind = ApiResource::erase::<Secret>(&());
    for secret in listed
        .items
        .iter()
        .filter(|it| belongs(it.annotations(), pool))
    {
        writer
            .delete(namespace, pool, &kind, &secret.name_any())
            .await?;
    }
    Ok(())
}

async fn config_maps(pool: &NodePool, namespace: &Namespace, writer: &Writer) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(writer.applier.client().clone(), namespace.name());
    let Some(selector) = selector(names::of(pool)) else {
        return Ok(());
    };
    let params = ListParams::default().labels(&selector);
    let listed = api.list_metadata(&params).await;
    let listed = listed.map_err(Error::read(format!("ConfigMaps of {}", namespace.name())))?;
    let kind = ApiResource::erase::<ConfigMap>(&());
    for map in &listed.items {
        writer
            .delete(namespace, pool, &kind, &map.name_any())
            .await?;
    }
    Ok(())
}

/// Selects the ConfigMaps of a pool. No object has a longer label, and the API server rejects a selector with one.
fn selector(pool: &str) -> Option<String> {
    (pool.len() <= LONGEST_LABEL).then(|| format!("{POOL_LABEL}={pool}"))
}

/// Sets the condition about the deletion.
pub(super) async fn explain(
    pool: &NodePool,
    reason: &str,
    message: String,
    writer: &Writer,
) -> Result<(), Error> {
    let mut status = pool.status.clone().unwrap_or_default();
    let mut conditions = Conditions::new(
        status.conditions,
        pool.metadata.generation,
        Timestamp::now(),
    );
    conditions.set(PoolCondition::Ready, Status::False, reason, message);
    status.conditions = conditions.list().to_vec();
    writer.status(pool, &status).await
}

fn message(waits: &[String]) -> String {
    let named = waits
        .iter()
        .take(MAX_LISTED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    let more = waits.len().saturating_sub(MAX_LISTED);
    let more = if more == 0 {
        String::new()
    } else {
        format!("; and {more} more")
    };
    format!("Waiting for {named}{more} to be deleted")
}

fn wait(kind: &str, name: &str, finalizers: &[String]) -> String {
    if finalizers.is_empty() {
        return format!("{kind} {name}");
    }
    format!("{kind} {name} (finalizers {})", finalizers.join(", "))
}

#[cfg(test)]
mod tests;
