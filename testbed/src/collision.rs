//! A HostedCluster with a control plane namespace that belongs to another one: what its author can request, and what the owner
//! has in the namespace.
//!
//! HostedClusters `clusters/a-b` and `clusters-a/b` share the namespace `clusters-a-b`. The annotation of the namespace
//! decides whose it is; the other HostedCluster is refused.

use std::ops::AsyncFn;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::annotations::{
    MIGRATION_ACKNOWLEDGED, MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, ROLLBACK_REQUESTED,
};
use api::group::{CapiTypes, core, infrastructure};
use serde_json::{Value, json};

use crate::client::{ApiClient, Patch, Resource};
use crate::conditions::{find, untrue};
use crate::operator::SOON;
use crate::{simulation, wait};

const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
const NODE_POOLS: Resource<'_> = Resource::new(HYPERSHIFT, "nodepools");
/// The finalizer of HostedClusters and NodePools.
const FINALIZER: &str = "hypershift.openshift.io/finalizer";
/// How long an operator gets to act on a change that it must not act on.
const REACTION_TIME: Duration = Duration::from_secs(8);

/// The platform of a HostedCluster and its NodePools.
#[derive(Debug, Clone)]
pub struct Platform {
    /// `spec.platform` of the HostedCluster.
    pub cluster: Value,
    /// `spec.platform` of the NodePools.
    pub pools: Value,
}

/// The HostedCluster that does not own the namespace, with its NodePools.
#[derive(Debug)]
pub struct Collider<'a> {
    /// The administrator's client.
    pub admin: &'a ApiClient,
    /// Namespace of the HostedCluster and of its NodePools.
    pub namespace: &'a str,
    /// Its name.
    pub name: String,
    /// The names of its NodePools.
    pub pools: Vec<String>,
    /// The owner of the control plane namespace, as `namespace/name`.
    pub owner: String,
    /// The release image of all of them.
    pub release: &'a str,
    /// The platform of all of them, unless it is AWS.
    pub platform: Option<Platform>,
}

// === impl Platform ===

impl Platform {
    fn place(&self, object: &mut Value) {
        let platform = match object["kind"].as_str() {
            Some("HostedCluster") => &self.cluster,
            Some("NodePool") => &self.pools,
            _ => return,
        };
        object["spec"]["platform"] = platform.clone();
    }
}

// === impl Collider ===

impl Collider<'_> {
    /// The path of the HostedCluster.
    pub fn path(&self) -> String {
        HOSTED_CLUSTERS.named(self.namespace, &self.name)
    }

    /// The paths of its NodePools, and then its own.
    fn paths(&self) -> Vec<String> {
        let pools = self.pools.iter();
        pools
            .map(|pool| NODE_POOLS.named(self.namespace, pool))
            .chain([self.path()])
            .collect()
    }

    /// Requests everything that an author can request, and deletes all of them: `unchanged` fails as soon as that changed
    /// anything of the owner's.
    pub async fn attempt_everything(
        &self,
        annotations: &Value,
        unchanged: impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        self.create(annotations, &[]).await?;
        self.is_refused().await?;
        self.has_no_effect(&Value::Null, &unchanged)
            .await
            .context("created")?;
        let lock = json!({ MIGRATION_IN_PROGRESS: "true" });
        self.annotate(&lock, &unchanged).await.context("locked")?;
        let request =
            json!({ MIGRATION_IN_PROGRESS: null, MIGRATION_ROLLBACK: ROLLBACK_REQUESTED });
        self.annotate(&request, &unchanged)
            .await
            .context("rollback requested")?;
        self.is_deleted_at_once().await?;
        unchanged().await.context("deleted")?;
        // As an older operator has left it.
        self.create(annotations, &[FINALIZER]).await?;
        self.is_refused().await?;
        self.annotate(&lock, &unchanged)
            .await
            .context("locked, with finalizers")?;
        self.is_deleted().await?;
        unchanged().await.context("deleted with finalizers")
    }

    /// Requests a cluster, and deletes it: `unchanged` fails as soon as that changed anything of the owner's.
    pub async fn attempt_creation(
        &self,
        annotations: &Value,
        unchanged: impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        self.create(annotations, &[]).await?;
        self.is_refused().await?;
        self.has_no_effect(&Value::Null, &unchanged)
            .await
            .context("created")?;
        self.is_deleted_at_once().await?;
        unchanged().await.context("deleted")
    }

    /// Creates the HostedCluster and its NodePools.
    pub async fn create(&self, annotations: &Value, finalizers: &[&str]) -> Result<()> {
        let mut objects = simulation::desired(&self.name, self.release)?;
        let pool = objects.iter().position(|it| it["kind"] == "NodePool");
        let pool = objects.remove(pool.context("there is no NodePool")?);
        objects.extend(self.pools.iter().map(|name| {
            let mut pool = pool.clone();
            pool["metadata"]["name"] = json!(name);
            pool
        }));
        for object in &mut objects {
            if object["kind"] == "Namespace" {
                object["metadata"]["name"] = json!(self.namespace);
                continue;
            }
            object["metadata"]["namespace"] = json!(self.namespace);
            if object["kind"] == "HostedCluster" {
                object["metadata"]["annotations"] = annotations.clone();
            }
            if let Some(platform) = &self.platform {
                platform.place(object);
            }
            if object["kind"] != "Secret" {
                object["metadata"]["finalizers"] = json!(finalizers);
            }
        }
        self.admin.apply(&objects).await
    }

    /// Waits until the conditions of all of them name the owner of the namespace.
    pub async fn is_refused(&self) -> Result<()> {
        for path in self.paths() {
            let kind = if path == self.path() {
                "ValidConfiguration"
            } else {
                "Ready"
            };
            wait::until(&format!("{path} to be refused"), SOON, async || {
                let found = self.admin.get(&path).await?;
                let condition = find(&found, kind)
                    .with_context(|| format!("there is none among {}", untrue(&found)))?;
                let message = condition["message"].as_str().unwrap_or_default();
                ensure!(
                    condition["status"] == "False" && message.contains(&self.owner),
                    "{condition}"
                );
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Sets annotations that request something of an operator in the namespace.
    async fn annotate(
        &self,
        annotations: &Value,
        unchanged: &impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        let patch = json!({ "metadata": { "annotations": annotations } });
        self.admin.patch(&self.path(), Patch::Merge, &patch).await?;
        self.has_no_effect(&annotations[MIGRATION_IN_PROGRESS], unchanged)
            .await
    }

    /// No migration begins or continues, and nothing of the owner's changes. `lock` is what the author has set.
    async fn has_no_effect(
        &self,
        lock: &Value,
        unchanged: &impl AsyncFn() -> Result<()>,
    ) -> Result<()> {
        wait::throughout("no effect", REACTION_TIME, async || {
            let acknowledged = self.annotation(MIGRATION_ACKNOWLEDGED).await?;
            ensure!(acknowledged.is_null(), "the lock was acknowledged");
            let found = self.annotation(MIGRATION_IN_PROGRESS).await?;
            ensure!(found == *lock, "the lock was {lock} and is {found}");
            unchanged().await
        })
        .await
    }

    async fn annotation(&self, key: &str) -> Result<Value> {
        let mut found = self.admin.get(&self.path()).await?;
        Ok(found["metadata"]["annotations"][key].take())
    }

    /// Deletes all of them: without finalizers, they are gone with the response.
    async fn is_deleted_at_once(&self) -> Result<()> {
        for path in self.paths() {
            self.admin.delete(&path).await?;
            let left = self.admin.find(&path).await?;
            ensure!(left.is_none(), "{path} has finalizers: {left:?}");
        }
        Ok(())
    }

    /// Deletes the HostedCluster, and waits until its NodePools are gone with it.
    pub async fn is_deleted(&self) -> Result<()> {
        self.admin.delete(&self.path()).await?;
        for path in self.paths() {
            wait::until(&format!("{path} to be gone"), SOON, async || {
                let left = self.admin.find(&path).await?;
                ensure!(left.is_none(), "{left:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// The name of the NodePool of a HostedCluster, where it has one.
pub fn pool(cluster: &str) -> String {
    format!("{cluster}-workers")
}

/// Objects for a control plane namespace that have the names of what the HostedCluster `other` would have there:
/// Cluster API objects of these types, an AWSEndpointService, a migration's journal, and what NodePools have.
pub fn objects(namespace: &str, other: &str, capi_types: &[CapiTypes]) -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": HYPERSHIFT,
            "kind": "AWSEndpointService",
            "metadata": { "name": "private-router", "finalizers": ["example.com/endpoint"] },
            "spec": { "networkLoadBalancerName": "nlb" },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": migration_executor::JOURNAL_NAME },
            "data": { "journal": "{}" },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": pool(other),
                "labels": { "hypershift.openshift.io/nodePool": pool(other) },
            },
        }),
    ];
    let secrets = ["token", "user-data"].map(|kind| format!("{kind}-{}-12345678", pool(other)));
    objects.extend(
        secrets.map(
            |name| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } }),
        ),
    );
    objects.extend(
        capi_types
            .iter()
            .flat_map(|capi_types| cluster_api(*capi_types, other)),
    );
    for object in &mut objects {
        object["metadata"]["namespace"] = json!(namespace);
    }
    objects
}

/// A cluster of Cluster API with a pool of machines, all of them paused.
fn cluster_api(capi_types: CapiTypes, other: &str) -> Vec<Value> {
    let (core, infrastructure) = (core(capi_types), infrastructure(capi_types));
    let (infra, pool) = (format!("{other}-x7k2p"), pool(other));
    let reference =
        |kind: &str, name: &str| json!({ "apiGroup": infrastructure, "kind": kind, "name": name });
    let labels = json!({ "example.com/pool": pool });
    let machine = json!({
        "clusterName": infra,
        "bootstrap": { "dataSecretName": "user-data" },
        "infrastructureRef": reference("AWSMachineTemplate", &pool),
    });
    let set = json!({
        "clusterName": infra,
        "replicas": 1,
        "selector": { "matchLabels": labels },
        "template": { "metadata": { "labels": labels }, "spec": machine },
    });
    let object = |group: &str, kind: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("{group}/v1beta2"),
            "kind": kind,
            "metadata": {
                "name": name,
                "labels": { "cluster.x-k8s.io/cluster-name": infra },
                "annotations": { "cluster.x-k8s.io/paused": "true" },
                "finalizers": ["example.com/machines"],
            },
            "spec": spec,
        })
    };
    let cluster = json!({ "paused": true, "infrastructureRef": reference("AWSCluster", other) });
    let template = json!({ "template": { "spec": { "instanceType": "m5.large" } } });
    vec![
        object(&core, "Cluster", &infra, cluster),
        object(&core, "MachineDeployment", &pool, set.clone()),
        object(&core, "MachineSet", &pool, set),
        object(&core, "Machine", &format!("{pool}-abcde"), machine),
        object(&infrastructure, "AWSMachineTemplate", &pool, template),
    ]
}
