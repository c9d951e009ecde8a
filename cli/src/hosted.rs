//! Hosted clusters on a management cluster, as commands read and write them. Nothing is decided here.

use anyhow::Context;
use api::hypershift::v1beta1::control_plane_component::ControlPlaneComponent;
use api::hypershift::v1beta1::hosted_cluster::HostedCluster;
use api::hypershift::v1beta1::hosted_control_plane::HostedControlPlane;
use api::hypershift::v1beta1::node_pool::NodePool;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::Value;

use crate::crds::source::cluster::{Access, connect};
use crate::install::cluster::{message, status_code};

/// Who writes what these commands write.
pub(crate) const FIELD_MANAGER: &str = "hypershift-cli";

/// The management cluster.
#[derive(Clone)]
pub(crate) struct Hosted {
    client: Client,
}

/// What the objects of a cluster say of it at one moment.
#[derive(Debug)]
pub(crate) struct Sight {
    pub(crate) cluster: Option<HostedCluster>,
    pub(crate) control_plane: Option<HostedControlPlane>,
    pub(crate) components: Vec<ControlPlaneComponent>,
    pub(crate) pools: Vec<NodePool>,
}

// === impl Hosted ===

impl Hosted {
    pub(crate) async fn connect(access: &Access) -> anyhow::Result<Self> {
        Ok(Self {
            client: connect(access).await?,
        })
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

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// A HostedCluster that must exist.
    pub(crate) async fn cluster(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<HostedCluster> {
        self.find(namespace, name).await?.with_context(|| {
            format!("there is no HostedCluster {namespace}/{name}: check --namespace and the name")
        })
    }

    pub(crate) async fn find(
        &self,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<Option<HostedCluster>> {
        let found = self.clusters(namespace).get_opt(name).await;
        found.map_err(|error| {
            if status_code(&error) == Some(404) {
                anyhow::anyhow!(
                    "HyperShift is not installed on this cluster: see hypershift install"
                )
            } else {
                refused(&error).context(format!("cannot read HostedCluster {namespace}/{name}"))
            }
        })
    }

    pub(crate) async fn has_namespace(&self, name: &str) -> anyhow::Result<bool> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_opt(name).await;
        Ok(found
            .map_err(|error| refused(&error).context(format!("cannot read namespace {name}")))?
            .is_some())
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
    pub(crate) async fn sight(&self, namespace: &str, name: &str) -> anyhow::Result<Sight> {
        let cluster = self.find(namespace, name).await?;
        let within = api::names::control_plane_namespace(namespace, name);
        let control_planes: Api<HostedControlPlane> = Api::namespaced(self.client.clone(), &within);
        let components: Api<ControlPlaneComponent> = Api::namespaced(self.client.clone(), &within);
        let all = ListParams::default();
        let (control_plane, components, pools) = tokio::join!(
            control_planes.get_opt(name),
            components.list(&all),
            self.pools_of(namespace, name),
        );
        Ok(Sight {
            cluster,
            control_plane: control_plane.unwrap_or_default(),
            components: components.map(|list| list.items).unwrap_or_default(),
            pools: pools.unwrap_or_default(),
        })
    }

    /// The node pools of a cluster.
    pub(crate) async fn pools_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> kube::Result<Vec<NodePool>> {
        let mut pools = self
            .pools(namespace)
            .list(&ListParams::default())
            .await?
            .items;
        pools.retain(|pool| pool.spec.cluster_name == name);
        Ok(pools)
    }
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
