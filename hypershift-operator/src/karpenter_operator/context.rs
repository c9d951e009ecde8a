//! What all controllers of a term have: clients of both clusters, and what they read of them.

use std::fmt::Debug;

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use api::karpenter::v1::OpenshiftEc2NodeClass;
use control_plane_component::settings::Settings;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Resource};
use payload::{Mirrors, PullSecret, Releases, pull_secret};
use serde::de::DeserializeOwned;
use serde_json::json;
use support::apply::Applier;
use support::reconcile::is_missing;

use super::control_plane::cluster_id;
use super::error::Error;
use super::instances::Ec2;
use super::updates::Updates;
use super::{classes, kinds};
use crate::capi::Capi;
use crate::control_plane_namespace::{self, ControlPlaneNamespace, Namespace};
use crate::names;

/// Field manager, in both clusters.
pub(super) const MANAGER: &str = "karpenter-operator";

/// Where it acts, and with what.
pub(super) struct Means {
    pub(super) management: kube::Client,
    pub(super) guest: kube::Client,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) capi_types: CapiTypes,
    pub(super) settings: Settings,
    pub(super) ignition_endpoint: String,
    pub(super) releases: Releases,
}

/// What controllers share.
pub(super) struct Context {
    pub(super) management: kube::Client,
    pub(super) guest: kube::Client,
    /// Writes objects of the control plane.
    pub(super) here: Applier,
    /// Writes objects of the hosted cluster.
    pub(super) there: Applier,
    /// The namespace of the control plane.
    pub(super) namespace: String,
    /// The HostedControlPlane.
    pub(super) name: String,
    pub(super) capi: Capi,
    pub(super) settings: Settings,
    /// Where new nodes get their configuration.
    pub(super) ignition_endpoint: String,
    pub(super) updates: Updates,
    pub(super) ec2: Ec2,
    releases: Releases,
}

// === impl Context ===

impl Context {
    pub(super) fn new(means: Means) -> Self {
        let Means {
            management,
            guest,
            namespace,
            name,
            capi_types,
            settings,
            ignition_endpoint,
            releases,
        } = means;
        Self {
            here: Applier::new(management.clone(), MANAGER),
            there: Applier::new(guest.clone(), MANAGER),
            management,
            guest,
            namespace,
            name,
            capi: Capi::new(capi_types),
            settings,
            ignition_endpoint,
            updates: Updates::default(),
            ec2: Ec2::default(),
            releases,
        }
    }

    /// The control plane, if there is one.
    pub(super) async fn control_plane(&self) -> Result<Option<HostedControlPlane>, Error> {
        self.get::<HostedControlPlane>(&self.name).await
    }

    /// The proof that the namespace is that of the cluster that the control plane names: without it nothing is written there.
    pub(super) async fn owned(
        &self,
        hcp: &HostedControlPlane,
    ) -> Result<ControlPlaneNamespace, Error> {
        let id = cluster_id(hcp)?;
        let found = control_plane_namespace::find(&self.management, &id.namespace, &id.name).await;
        let found = found.map_err(Error::Owner)?;
        match found.owned() {
            Some(owned) if **owned == *self.namespace => Ok(owned.clone()),
            Some(_) | None => Err(Error::Unreadable {
                object: format!("Namespace {}", self.namespace),
                problem: refusal(&found, &id.namespace, &id.name),
            }),
        }
    }

    /// An object of the control plane.
    pub(super) async fn get<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.management.clone(), &self.namespace);
        let what = format!("{} {}/{name}", K::kind(&()), self.namespace);
        api.get_opt(name).await.map_err(Error::read(what))
    }

    /// A key of a Secret of the control plane.
    pub(super) async fn key(&self, secret: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.get::<Secret>(secret).await?;
        Ok(found.and_then(|it| it.data?.remove(key)).map(|it| it.0))
    }

    /// Secrets of the control plane with a label.
    pub(super) async fn secrets(&self, label: &str) -> Result<Vec<Secret>, Error> {
        let api: Api<Secret> = Api::namespaced(self.management.clone(), &self.namespace);
        let listed = api.list(&ListParams::default().labels(label)).await;
        let what = format!("Secrets of {} with {label}", self.namespace);
        Ok(listed.map_err(Error::read(what))?.items)
    }

    /// ConfigMaps of the control plane with a label.
    pub(super) async fn config_maps(&self, label: &str) -> Result<Vec<ConfigMap>, Error> {
        let api: Api<ConfigMap> = Api::namespaced(self.management.clone(), &self.namespace);
        let listed = api.list(&ListParams::default().labels(label)).await;
        let what = format!("ConfigMaps of {} with {label}", self.namespace);
        Ok(listed.map_err(Error::read(what))?.items)
    }

    /// The classes of machines, the oldest first. While the hosted cluster does not serve the kind, there are none.
    pub(super) async fn classes(&self) -> Result<Vec<OpenshiftEc2NodeClass>, Error> {
        let found = self.list_there(&kinds::node_class()).await?;
        let read = found.into_iter().map(|object| {
            let name = object.metadata.name.clone().unwrap_or_default();
            serde_json::from_value(json!(object)).map_err(|error| Error::Unreadable {
                object: format!("OpenshiftEC2NodeClass {name}"),
                problem: error.to_string(),
            })
        });
        Ok(classes::in_order(read.collect::<Result<_, _>>()?))
    }

    /// All objects of a kind in the hosted cluster that has no namespaces. A kind that is not served has none.
    pub(super) async fn list_there(&self, kind: &ApiResource) -> Result<Vec<DynamicObject>, Error> {
        let api: Api<DynamicObject> = Api::all_with(self.guest.clone(), kind);
        match api.list(&ListParams::default()).await {
            Ok(list) => Ok(list.items),
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            Err(source) => Err(Error::Read {
                what: format!("{} of the hosted cluster", kind.plural),
                source,
            }),
        }
    }

    /// The nodes of the hosted cluster.
    pub(super) async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let api: Api<Node> = Api::all(self.guest.clone());
        let listed = api.list(&ListParams::default()).await;
        Ok(listed.map_err(Error::read("Nodes"))?.items)
    }

    /// The credentials for registries.
    pub(super) async fn pull_secret(&self) -> Result<(PullSecret, Vec<u8>), Error> {
        let bytes = self.key(names::PULL_SECRET, pull_secret::KEY).await?;
        let unreadable = |problem: String| Error::Unreadable {
            object: format!("Secret {}/{}", self.namespace, names::PULL_SECRET),
            problem,
        };
        let bytes =
            bytes.ok_or_else(|| unreadable(format!("it has no key {}", pull_secret::KEY)))?;
        let parsed = PullSecret::parse(&bytes).map_err(|error| unreadable(error.to_string()))?;
        Ok((parsed, bytes))
    }

    /// Reads releases for the cluster.
    pub(super) fn releases(&self, hcp: &HostedControlPlane) -> Releases {
        let mirrors = Mirrors::of(&hcp.spec.image_content_sources);
        let releases = self.releases.for_tenant(&self.namespace);
        releases.with_mirrors(&mirrors)
    }
}

fn refusal(found: &Namespace, namespace: &str, name: &str) -> String {
    let refusal = found.refusal(namespace, name);
    refusal.unwrap_or_else(|| "it is not the control plane's".to_owned())
}
