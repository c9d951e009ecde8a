//! Hosted clusters on a management cluster, as commands read and write them. Nothing is decided here.

use anyhow::Context;
use api::hypershift::v1beta1::control_plane_component::ControlPlaneComponent;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::hosted_control_plane::HostedControlPlane;
use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use crate::crds::source::cluster::{Access, connect_as};
use crate::install::cluster::{message, status_code};
use crate::listed::{self, Listed};

/// Who writes what these commands write.
pub(crate) const FIELD_MANAGER: &str = "hypershift-cli";

/// The management cluster.
#[derive(Clone)]
pub(crate) struct Hosted {
    client: Client,
}

/// What the objects of a cluster say of it at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) cluster: Option<HostedCluster>,
    pub(crate) control_plane: Option<HostedControlPlane>,
    pub(crate) components: Listed<ControlPlaneComponent>,
    pub(crate) pools: Listed<NodePool>,
}

// === impl Hosted ===

impl Hosted {
    pub(crate) async fn connect(access: &Access) -> anyhow::Result<Self> {
        Self::connect_as(access, None).await
    }

    /// Connects, and impersonates a user.
    pub(crate) async fn connect_as(access: &Access, user: Option<&str>) -> anyhow::Result<Self> {
        Ok(Self {
            client: connect_as(access, user).await?,
        })
    }

    /// With a client that exists.
    #[cfg(test)]
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) fn clusters(&self, namespace: &str) -> Api<HostedCluster> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn pools(&self, namespace: &str) -> Api<NodePool> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// A HostedCluster that must exist.
    pub(crate) async fn cluster(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<HostedCluster> {
        let found = self.find(namespace, name).await?;
        found.with_context(|| missing_cluster(namespace, name))
    }

    pub(crate) async fn find(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Option<HostedCluster>> {
        let found = self.clusters(namespace).get_opt(name).await;
        found.map_err(|error| unreadable_cluster(&error, namespace, name))
    }

    /// A HostedCluster that must exist, as the API server has it.
    pub(crate) async fn cluster_object(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<DynamicObject> {
        let api = listed::api::<HostedCluster>(self.client.clone(), Some(namespace));
        let found = api.get_opt(name).await;
        let found = found.map_err(|error| unreadable_cluster(&error, namespace, name))?;
        found.with_context(|| missing_cluster(namespace, name))
    }

    pub(crate) async fn has_namespace(&self, name: &str) -> anyhow::Result<bool> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_opt(name).await;
        Ok(found
            .map_err(|error| refused(&error).context(format!("cannot read namespace {name}")))?
            .is_some())
    }

    /// Merges a patch into the metadata of a HostedCluster.
    pub(crate) async fn patch_cluster(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> kube::Result<()> {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let clusters = self.clusters(namespace);
        let patch = Patch::Merge(patch);
        let patched = clusters.patch_metadata(name, &params, &patch);
        patched.await.map(drop)
    }

    /// Applies an object; with `dry_run` the API server is only asked whether it would take it.
    pub(crate) async fn create(&self, object: &Value, dry_run: bool) -> anyhow::Result<()> {
        let mut params = PatchParams::apply(FIELD_MANAGER);
        params.dry_run = dry_run;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let api = self.api(object);
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied
            .map(drop)
            .map_err(|error| refused(&error).context(format!("{} is refused", named(object))))
    }

    /// Creates an object that must not exist yet; with `dry_run` the API server is only asked whether it would take it.
    pub(crate) async fn insert(&self, object: &Value, dry_run: bool) -> anyhow::Result<()> {
        let params = PostParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let typed: DynamicObject = serde_json::from_value(object.clone())?;
        let created = self.api(object).create(&params, &typed).await;
        created
            .map(drop)
            .map_err(|error| refused(&error).context(format!("{} is refused", named(object))))
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion")
            .split_once('/')
            .unwrap_or(("", text("apiVersion")));
        let kind = GroupVersionKind::gvk(group, version, text("kind"));
        let resource = ApiResource::from_gvk(&kind);
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// What there is of a cluster now. What may not be looked at is taken for absent.
    pub(crate) async fn snapshot(&self, namespace: &str, name: &str) -> anyhow::Result<Snapshot> {
        let cluster = self.find(namespace, name).await?;
        let within = api::names::control_plane_namespace(namespace, name);
        let control_planes: Api<HostedControlPlane> = Api::namespaced(self.client.clone(), &within);
        let (control_plane, components, pools) = tokio::join!(
            control_planes.get_opt(name),
            listed::objects::<ControlPlaneComponent>(self.client.clone(), Some(&within)),
            self.pools_of(namespace, name),
        );
        Ok(Snapshot {
            cluster,
            control_plane: control_plane.unwrap_or_default(),
            components: components.unwrap_or_default().into_iter().collect(),
            pools: pools.unwrap_or_default(),
        })
    }

    /// The node pools of a cluster.
    pub(crate) async fn pools_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> kube::Result<Listed<NodePool>> {
        let pools = self.pool_objects(namespace, name).await?;
        Ok(pools.into_iter().collect())
    }

    /// The node pools of a cluster as the API server has them.
    pub(crate) async fn pool_objects(
        &self,
        namespace: &str,
        name: &str,
    ) -> kube::Result<Vec<DynamicObject>> {
        let client = self.client.clone();
        let mut pools = listed::objects::<NodePool>(client, Some(namespace)).await?;
        pools.retain(|pool| pool.data["spec"]["clusterName"] == name);
        Ok(pools)
    }
}

fn missing_cluster(namespace: &str, name: &str) -> String {
    format!("there is no HostedCluster {namespace}/{name}: check --namespace and the name")
}

fn unreadable_cluster(error: &kube::Error, namespace: &str, name: &str) -> anyhow::Error {
    if status_code(error) == Some(404) {
        return anyhow::anyhow!(
            "HyperShift is not installed on this cluster: see hypershift install"
        );
    }
    refused(error).context(format!("failed to get HostedCluster {namespace}/{name}"))
}

/// How many nodes a pool has.
pub(crate) fn nodes(pool: &NodePool) -> i32 {
    let status = pool.status.as_ref();
    status
        .and_then(|status| status.replicas)
        .unwrap_or_default()
}

/// An error of the API server, in its own words.
pub(crate) fn refused(error: &kube::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", message(error).replace('\n', " "))
}

/// Kind, namespace and name of an object.
pub(crate) fn named(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// A HostedCluster with what each has, for tests.
#[cfg(test)]
pub(crate) fn bare_cluster(name: &str) -> Value {
    serde_json::json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": { "namespace": "clusters", "name": name },
        "spec": {
            "release": { "image": "registry.example.com/release:1" },
            "platform": { "type": "None" },
            "networking": {},
            "services": [],
            "etcd": { "managementType": "Managed" },
            "pullSecret": { "name": "a-pull-secret" },
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use support::testing::{Answer, Expect, Scenario};

    use super::*;

    const POOLS: &str = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools";

    fn pool() -> Value {
        json!({
            "apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "NodePool",
            "metadata": { "namespace": "clusters", "name": "a" },
            "spec": { "replicas": 2 },
        })
    }

    #[tokio::test]
    async fn an_object_that_exists_is_not_changed() {
        let exists = Answer::error(409, "AlreadyExists");
        let call = Expect::post(POOLS)
            .body(json!({ "spec": { "replicas": 2 } }))
            .answer(exists);
        let scenario = Scenario::new([call]);
        let hosted = Hosted::new(scenario.client());
        let error = hosted.insert(&pool(), false).await.unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains("NodePool clusters/a is refused"), "{said}");
        scenario.finish();
    }

    #[tokio::test]
    async fn a_dry_run_is_one_for_the_api_server() {
        let call = Expect::post(&format!("{POOLS}?dryRun=All")).answer(Answer::ok(&pool()));
        let scenario = Scenario::new([call]);
        let hosted = Hosted::new(scenario.client());
        hosted.insert(&pool(), true).await.unwrap();
        scenario.finish();
    }
}
