//! What the controller of private links asks the part of a cloud.

use std::fmt::Debug;
use std::time::Duration;

use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::Objects;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::controller::Settings;

/// The kind of the links of a cloud.
pub(super) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// What was done for a link.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pass {
    /// The change of its metadata, if there is one.
    pub(super) metadata: Option<Value>,
    /// The change of its status, if there is one.
    pub(super) status: Option<Value>,
    /// The Services for names outside of the private zone; without them, they are left as they are.
    pub(super) externals: Option<Vec<Value>>,
    /// Objects of kinds that the management cluster may not have: it does not matter if they cannot be applied.
    pub(super) further: Vec<(ApiResource, Value)>,
    pub(super) next: Next,
}

/// When the cloud is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// As soon as what has changed is written.
    Continue,
    /// After this time, if nothing changes that is read.
    Rest(Duration),
}

/// How a deletion went on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Removed {
    /// Nothing is left in the cloud.
    Done,
    /// The cloud is still deleting.
    Waiting,
    /// The status is changed, if there is a change, and it is tried again after this time.
    Failed(Option<Value>, Duration),
}

/// The part of a cloud.
pub(super) trait Provider {
    type Link: Kind;

    /// How links are reconciled.
    const SETTINGS: Settings;
    /// The Services that are reached by private links; a link has the name of its Service.
    const SERVICES: &'static [&'static str];
    /// The finalizer of links: the endpoint goes first.
    const FINALIZER: &'static str;
    /// The finalizer that the control plane has as long as it has links, if any.
    const HOLD: Option<&'static str>;
    /// The label of Services for names outside of the private zone.
    const EXTERNAL: &'static str;

    /// Whether a control plane has private links.
    fn is_private(hcp: &HostedControlPlane) -> bool;

    /// The link of a Service, once the Service has a load balancer.
    fn link(hcp: &HostedControlPlane, objects: &Objects, service: &str) -> Option<Value>;

    /// Whether a link has all of this.
    fn has(live: &Self::Link, desired: &Value) -> bool;

    /// Whether the hypershift-operator has done its part.
    fn is_offered(live: &Self::Link) -> bool;

    /// A hash of what is read. What this controller writes is not.
    fn digest(hcp: &HostedControlPlane, live: &Self::Link, siblings: &[String]) -> u64;

    /// Makes the endpoint. The siblings are the other links.
    async fn ensure(
        &self,
        hcp: &HostedControlPlane,
        live: &Self::Link,
        siblings: &[String],
    ) -> Pass;

    /// Deletes it.
    async fn remove(
        &self,
        hcp: &HostedControlPlane,
        live: &Self::Link,
        siblings: &[String],
    ) -> Removed;
}

// === impl Pass ===

impl Pass {
    /// A pass that writes nothing but the status.
    pub(super) fn reported(status: Option<Value>, next: Next) -> Self {
        Self {
            metadata: None,
            status,
            externals: None,
            further: Vec::new(),
            next,
        }
    }

    /// A pass that adds the finalizer to a link without it: what is made in the cloud after that is cleaned up.
    pub(super) fn add_finalizer<K: Kind>(live: &K, finalizer: &str) -> Option<Self> {
        let mut finalizers = live.meta().finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|it| it == finalizer) {
            return None;
        }
        finalizers.push(finalizer.to_owned());
        Some(Self {
            metadata: Some(json!({ "metadata": { "finalizers": finalizers } })),
            ..Self::reported(None, Next::Continue)
        })
    }
}
