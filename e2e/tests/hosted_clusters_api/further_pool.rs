//! A further pool of a cluster, for one stage.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, untrue};
use testbed::operator::SOON;
use testbed::{simulation, wait};

use crate::hosted_clusters_api::cluster::{Cluster, NODE_POOLS, gone};
use crate::hosted_clusters_api::fixture::NAMESPACE;

/// The pool.
pub(crate) struct FurtherPool<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) admin: &'a ApiClient,
    pub(crate) name: String,
}

// === impl FurtherPool ===

impl<'a> FurtherPool<'a> {
    /// The pool with this suffix. No request is sent yet.
    pub(crate) fn new(cluster: &'a Cluster, admin: &'a ApiClient, suffix: &str) -> Self {
        let name = format!("{}-{suffix}", cluster.name);
        Self {
            cluster,
            admin,
            name,
        }
    }

    pub(crate) fn path(&self) -> String {
        NODE_POOLS.named(NAMESPACE, &self.name)
    }

    /// The path of its MachineDeployment.
    pub(crate) fn deployment_path(&self) -> String {
        let deployments = Resource::new(self.cluster.version(false), "machinedeployments");
        deployments.named(&self.cluster.namespace(), &self.name)
    }

    /// The NodePool, like the one that clusters are created with, of this release.
    pub(crate) fn desired(&self, release: &str) -> Result<Value> {
        let objects = simulation::desired(self.cluster.name, release)?;
        let mut pools = objects.into_iter().filter(|it| it["kind"] == "NodePool");
        let mut pool = pools.next().context("the fixture has no NodePool")?;
        pool["metadata"]["name"] = json!(self.name);
        Ok(pool)
    }

    pub(crate) async fn change(&self, spec: &Value) -> Result<()> {
        let patch = json!({ "spec": spec });
        let patched = self.admin.patch(&self.path(), Patch::Merge, &patch).await;
        patched.map(drop)
    }

    /// Its MachineDeployment, once it is as it should be.
    pub(crate) async fn until(
        &self,
        what: &str,
        is_so: impl Fn(&Value) -> Result<()>,
    ) -> Result<Value> {
        let what = format!("{}: {what}", self.name);
        wait::until(&what, SOON, async || {
            let pool = self.admin.get(&self.path()).await?;
            let reported = || format!("the pool says {}", untrue(&pool));
            let found = self.admin.find(&self.deployment_path()).await?;
            let found = found.with_context(reported)?;
            is_so(&found).with_context(reported)?;
            Ok(found)
        })
        .await
    }

    /// Waits for a condition with all these parts of its message.
    pub(crate) async fn reports(
        &self,
        kind: &str,
        (status, reason): (&str, &str),
        parts: &[&str],
    ) -> Result<()> {
        let what = format!("{kind} of {} to be {status}", self.name);
        wait::until(&what, SOON, async || {
            let pool = self.admin.get(&self.path()).await?;
            let found = find(&pool, kind)
                .with_context(|| format!("there is none among {}", untrue(&pool)))?;
            let message = found["message"].as_str().unwrap_or_default();
            let missing = parts.iter().find(|part| !message.contains(**part));
            ensure!(
                found["status"] == status && found["reason"] == reason && missing.is_none(),
                "{found}; it lacks {missing:?}"
            );
            Ok(())
        })
        .await
    }

    /// Deletes it, and waits until its MachineDeployment is gone, too.
    pub(crate) async fn is_deleted(&self) -> Result<()> {
        self.admin.delete(&self.path()).await?;
        let deployment = self.deployment_path();
        gone(self.admin, [self.path(), deployment.clone(), deployment]).await
    }
}

/// The Secret with the user data of a MachineDeployment's machines.
pub(crate) fn user_data(deployment: &Value) -> &str {
    let name = &deployment["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"];
    name.as_str().unwrap_or_default()
}
