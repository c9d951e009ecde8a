//! Takes a pool away: first what makes and replaces machines, then the machines, then what they needed, and the pool
//! last. While it waits, a condition says for what.

use std::time::Duration;

use api::conditions::{PoolCondition, Status};
use api::group::Side;
use api::hypershift::v1beta1::node_pool::NodePool;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use support::reconcile::is_missing;

use super::conditions::Conditions;
use super::error::Error;
use super::health_check;
use super::observed::Machine;
use super::workload::PAUSED;
use super::write::{Writer, belongs};
use super::{machines, names};
use crate::capi::Capi;
use crate::control_plane_namespace::Namespace;

/// How long until it is looked again, if nothing happens meanwhile.
const AGAIN: Duration = Duration::from_secs(10);
/// How many are named in a message.
const NAMED: usize = 5;
/// What is made for a pool beside its Secrets.
const POOL_LABEL: &str = "hypershift.openshift.io/nodePool";

/// Deletes what is left of a pool, on these sides; gives the pause until it is looked again, and nothing when it is gone.
pub(crate) async fn delete(
    pool: &NodePool,
    sides: &[Side],
    namespace: &Namespace,
    writer: &Writer,
) -> Result<Option<Duration>, Error> {
    let mut waits = Vec::new();
    for side in sides {
        let remover = Remover {
            pool,
            capi: Capi::new(*side),
            namespace,
            writer,
        };
        waits.extend(remover.workloads().await?);
        waits.extend(remover.machines().await?);
    }
    if !waits.is_empty() {
        explain(pool, "Deleting", message(&waits), writer).await?;
        return Ok(Some(AGAIN));
    }
    for side in sides {
        let remover = Remover {
            pool,
            capi: Capi::new(*side),
            namespace,
            writer,
        };
        remover.templates().await?;
    }
    secrets(pool, namespace, writer).await?;
    config_maps(pool, namespace, writer).await?;
    writer.release(pool).await?;
    Ok(None)
}

/// One side of a pool that goes.
struct Remover<'a> {
    pool: &'a NodePool,
    capi: Capi,
    namespace: &'a Namespace,
    writer: &'a Writer,
}

// === impl Remover ===

impl Remover<'_> {
    /// What replaces machines goes before what makes them. Gives what is waited for.
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
        let annotations = found.await?.and_then(|it| it.annotations);
        if annotations.is_some_and(|it| it.contains_key(PAUSED)) {
            self.writer
                .annotate(kind, self.namespace.name(), name, PAUSED, Value::Null)
                .await?;
        }
        Ok(())
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

    /// The objects of a kind that were made for the pool. Where the kind is not, there is none.
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
    let params = ListParams::default().labels(&format!("{POOL_LABEL}={}", names::of(pool)));
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

/// Says why the pool is not ready.
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
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    let more = waits.len().saturating_sub(NAMED);
    let more = if more == 0 {
        String::new()
    } else {
        format!("; and {more} more")
    };
    format!("the pool is being deleted, and waits for {named}{more}")
}

fn wait(kind: &str, name: &str, finalizers: &[String]) -> String {
    if finalizers.is_empty() {
        return format!("{kind} {name}");
    }
    format!("{kind} {name} (held by {})", finalizers.join(", "))
}

#[cfg(test)]
mod tests;
