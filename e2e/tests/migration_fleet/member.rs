//! One hosted cluster of the fleet, with its pool of nodes.

use anyhow::{Context, Result, ensure};
use api::annotations::{
    MIGRATION_ACKNOWLEDGED, MIGRATION_ATTEMPTS, MIGRATION_FAILED, MIGRATION_FAILURE_MESSAGE,
    MIGRATION_IN_PROGRESS, MIGRATION_ROLLBACK, PRIVATE_CAPI_TYPES, SCOPE,
};
use api::group::{self, CapiTypes};
use migration::groups::Direction;
use serde_json::{Value, json};
use testbed::client::{ApiClient, Patch, Resource};
use testbed::conditions::{find, is_true, untrue};
use testbed::migration::object_snapshot::{ObjectSnapshot, owners_are_there};
use testbed::migration::{Manner, executor};
use testbed::operator::SOON;
use testbed::testbed::Testbed;
use testbed::{capi_storage, simulation, wait};

use crate::migration_fleet::fixture::{Fixture, NAMESPACE};
use crate::migration_fleet::platform::Platform;

const HYPERSHIFT: &str = "hypershift.openshift.io/v1beta1";
const HOSTED_CLUSTERS: Resource<'_> = Resource::new(HYPERSHIFT, "hostedclusters");
const NODE_POOLS: Resource<'_> = Resource::new(HYPERSHIFT, "nodepools");
const CLUSTERS: Resource<'_> = Resource::new("cluster.x-k8s.io/v1beta2", "clusters");
const ROLES: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "roles");
const BINDINGS: Resource<'_> = Resource::new("rbac.authorization.k8s.io/v1", "rolebindings");
const DEPLOYMENTS: Resource<'_> = Resource::new("apps/v1", "deployments");
const CONFIG_MAPS: Resource<'_> = Resource::new("v1", "configmaps");
/// The rights that an operator gives itself while it migrates, and the ConfigMap of what was there before.
const RIGHTS: &str = "private-capi-migration";
const KEPT: &str = "private-capi-migration-operators";
/// The proxy beside a controller.
const PROXY: &str = "kube-apiserver-proxy";
/// What a migration in progress, or one that failed, leaves on a cluster.
const TRANSIENT: [&str; 6] = [
    MIGRATION_ACKNOWLEDGED,
    MIGRATION_ATTEMPTS,
    MIGRATION_FAILED,
    MIGRATION_FAILURE_MESSAGE,
    MIGRATION_IN_PROGRESS,
    MIGRATION_ROLLBACK,
];

/// It, by its name and platform.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) platform: Platform,
}

// === impl Member ===

impl Member {
    pub(crate) fn new(name: impl Into<String>, platform: Platform) -> Self {
        Self {
            name: name.into(),
            platform,
        }
    }

    pub(crate) fn path(&self) -> String {
        HOSTED_CLUSTERS.named(NAMESPACE, &self.name)
    }

    /// The namespace of its control plane.
    pub(crate) fn namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    /// Its name in the cloud, and of its Cluster API object.
    pub(crate) fn infra(&self) -> String {
        format!("{}-x7k2p", self.name)
    }

    pub(crate) fn pool(&self) -> String {
        format!("{}-workers", self.name)
    }

    /// Creates it on standard types, with a pool of one node.
    pub(crate) async fn create(&self, admin: &ApiClient, fixture: &Fixture) -> Result<()> {
        let mut objects = self.platform.desired(&self.name, fixture)?;
        for object in &mut objects {
            if object["kind"] == "HostedCluster" {
                object["metadata"]["annotations"] = json!({ SCOPE: "legacy" });
            }
        }
        admin.apply(&objects).await
    }

    /// Has its control plane start without a control-plane-operator, and waits until all is made of it.
    pub(crate) async fn comes_up(&self, admin: &ApiClient) -> Result<()> {
        simulation::control_plane_comes_up(admin, NAMESPACE, &self.name).await?;
        self.is_made(admin).await
    }

    /// Waits until it is available on standard types, and its objects of Cluster API are made.
    pub(crate) async fn is_made(&self, admin: &ApiClient) -> Result<()> {
        let what = format!("{} to be made", self.name);
        wait::until(&what, SOON * 2, async || {
            let cluster = self.seen(admin).await?;
            ensure!(is_true(&cluster, "Available"), "{}", untrue(&cluster));
            if self.platform.has_machines() {
                return self.replicas(admin, CapiTypes::Standard).await.map(drop);
            }
            if self.platform.kinds().is_some() {
                let path = CLUSTERS.named(&self.namespace(), &self.infra());
                admin.get(&path).await?;
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn seen(&self, admin: &ApiClient) -> Result<Value> {
        admin.get(&self.path()).await
    }

    /// How many nodes are requested in given types.
    async fn replicas(&self, admin: &ApiClient, capi_types: CapiTypes) -> Result<Value> {
        let version = format!("{}/v1beta2", group::core(capi_types));
        let sets = Resource::new(&version, "machinedeployments");
        let path = sets.named(&self.namespace(), &self.pool());
        Ok(admin.get(&path).await?["spec"]["replicas"].take())
    }

    /// How many machines Cluster API has created in given types.
    pub(crate) async fn machines(&self, admin: &ApiClient, capi_types: CapiTypes) -> Result<usize> {
        let version = format!("{}/v1beta2", group::core(capi_types));
        let machines = Resource::new(&version, "machines");
        Ok(admin.list(&machines.within(&self.namespace())).await?.len())
    }

    /// Scales its pool, and waits until its operator has scaled the MachineDeployment on its side: so it works.
    pub(crate) async fn works(
        &self,
        admin: &ApiClient,
        capi_types: CapiTypes,
        replicas: u32,
    ) -> Result<()> {
        let path = NODE_POOLS.named(NAMESPACE, &self.pool());
        let desired = json!({ "spec": { "replicas": replicas } });
        admin.patch(&path, Patch::Merge, &desired).await?;
        let what = format!("{} to request {replicas} nodes", self.name);
        wait::until(&what, SOON, async || {
            let found = self.replicas(admin, capi_types).await?;
            ensure!(found == replicas, "{found} are requested");
            Ok(())
        })
        .await
    }

    /// What it consists of, whatever the side.
    pub(crate) async fn object_snapshot(&self, fixture: &Fixture) -> Result<ObjectSnapshot> {
        ObjectSnapshot::of(&fixture.client, &self.namespace()).await
    }

    /// Fails unless all owners that its objects name are there.
    pub(crate) async fn has_its_owners(&self, fixture: &Fixture) -> Result<()> {
        let manner = Manner::default();
        let mut executor = executor(&fixture.client, &self.namespace(), &manner).await?;
        let snapshot = executor.survey(Direction::Forward).await?;
        owners_are_there(snapshot).with_context(|| format!("m04: {}", self.name))
    }

    /// An annotation of it.
    pub(crate) async fn annotation(&self, admin: &ApiClient, key: &str) -> Result<Option<String>> {
        let cluster = self.seen(admin).await?;
        let found = &cluster["metadata"]["annotations"][key];
        Ok(found.as_str().map(ToOwned::to_owned))
    }

    /// Fails unless it is on one side for good: marks, condition, objects, controllers, and nothing of a migration left.
    pub(crate) async fn is_on(&self, testbed: &Testbed, capi_types: CapiTypes) -> Result<()> {
        let admin = &testbed.admin;
        let cluster = self.seen(admin).await?;
        let annotations = &cluster["metadata"]["annotations"];
        let (private, legacy, status) = match capi_types {
            CapiTypes::Private => (json!("true"), Value::Null, "True"),
            CapiTypes::Standard => (Value::Null, json!("legacy"), "False"),
        };
        ensure!(
            annotations[PRIVATE_CAPI_TYPES] == private && annotations[SCOPE] == legacy,
            "{}: {annotations}",
            self.name
        );
        let condition = find(&cluster, "PrivateCAPITypes").context("it says nothing")?;
        ensure!(condition["status"] == status, "{}: {condition}", self.name);
        if self.platform.kinds().is_some() {
            let etcd = &testbed.control_plane.etcd;
            let stored = capi_storage::within(etcd, &self.namespace()).await?;
            let is_only_there = stored.are_only_on(capi_types);
            is_only_there.with_context(|| format!("m20a: {}", self.name))?;
        }
        if self.platform.has_machines() {
            for name in ["cluster-api", "capi-provider"] {
                self.has_proxy(admin, name, capi_types).await?;
            }
        }
        Ok(())
    }

    /// No trace of a migration is left on it, except for the ownership annotations.
    pub(crate) async fn is_at_rest(&self, testbed: &Testbed) -> Result<()> {
        let admin = &testbed.admin;
        let cluster = self.seen(admin).await?;
        for key in TRANSIENT {
            let left = &cluster["metadata"]["annotations"][key];
            ensure!(left.is_null(), "{} has {key}: {left}", self.name);
        }
        self.has_no_remains(admin).await
    }

    /// No rights, and nothing that was kept.
    pub(crate) async fn has_no_remains(&self, admin: &ApiClient) -> Result<()> {
        for (kind, name) in [(&ROLES, RIGHTS), (&BINDINGS, RIGHTS), (&CONFIG_MAPS, KEPT)] {
            let path = kind.named(&self.namespace(), name);
            ensure!(admin.find(&path).await?.is_none(), "{path} is left");
        }
        Ok(())
    }

    async fn has_proxy(&self, admin: &ApiClient, name: &str, capi_types: CapiTypes) -> Result<()> {
        let deployment = admin
            .get(&DEPLOYMENTS.named(&self.namespace(), name))
            .await?;
        let has = has_proxy(&deployment);
        ensure!(
            has == (capi_types == CapiTypes::Private),
            "{name} of {} has a proxy: {has}",
            self.name
        );
        ensure!(
            deployment["spec"]["replicas"] != 0,
            "{name} of {} is stopped",
            self.name
        );
        Ok(())
    }
}

/// Whether a Deployment's pods have the proxy.
pub(crate) fn has_proxy(deployment: &Value) -> bool {
    let pod = &deployment["spec"]["template"]["spec"];
    let containers = ["initContainers", "containers"];
    let mut containers = containers
        .iter()
        .flat_map(|kind| pod[kind].as_array().into_iter().flatten());
    containers.any(|one| one["name"] == PROXY)
}
