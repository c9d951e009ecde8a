//! Deletion of a HostedCluster: objects are deleted in an order in which the controllers that clean up still run.
//!
//! Each reconcile begins at the first step and stops at the first one that is not complete, which is reported. The
//! order: node pools, what their provider has on the infrastructure, the Cluster with its machines, the Deployments that
//! worked for it, what is outside of the namespace, the control plane, the documents by which a cloud validated its tokens,
//! the namespace.

mod endpoints;
mod explain;
mod karpenter;
mod own;

use std::time::Duration;

use api::annotations::cluster::{CLEANUP_CLOUD_RESOURCES, DESTROY_GRACE_PERIOD, KEEP_NAMESPACE};
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::{HostedCluster, HostedControlPlane, NodePool};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde_json::{Value, json};
use support::reconcile::is_missing;

use super::{Id, infra_policy, oidc};
use crate::context::Context;
use crate::control_plane_namespace::{self, Namespace};
use crate::error::Error;
use crate::facts::Facts;
use crate::names;
use crate::platform::infrastructure;
use crate::private_link;
pub(super) use explain::Waiting;
use own::Own;

/// How a deletion went on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Objects are still being deleted.
    Waiting(Waiting),
    /// Everything is deleted. The HostedCluster stays for the grace period of its annotation.
    Gone(Duration),
}

type Step = Result<Option<Waiting>, Error>;

/// Continues the deletion. Objects are looked up by name or by kind, and deleted only if they are the cluster's:
/// its namespace may be another one's, and always has been where the cluster was refused.
pub(super) async fn advance(
    facts: &Facts,
    namespace: &Namespace,
    ctx: &Context,
) -> Result<Progress, Error> {
    let deletion = Deletion {
        facts,
        namespace,
        ctx,
    };
    deletion.unpause().await?;
    if let Some(waiting) = deletion.inside().await? {
        return Ok(Progress::Waiting(waiting));
    }
    let grace = DESTROY_GRACE_PERIOD.get(facts.annotations()).ok().flatten();
    Ok(Progress::Gone(
        grace.map(Duration::from).unwrap_or_default(),
    ))
}

/// The deletion of one cluster.
struct Deletion<'a> {
    facts: &'a Facts,
    namespace: &'a Namespace,
    ctx: &'a Context,
}

// === impl Deletion ===

impl Deletion<'_> {
    /// Runs the steps in order; returns what is waited for.
    async fn inside(&self) -> Step {
        self.release_orphans().await?;
        if self.facts.cluster.spec.platform.type_ == PlatformType::Aws {
            self.release_karpenter().await?;
        }
        if let Some(waiting) = self.node_pools().await? {
            return Ok(Some(waiting));
        }
        if let Some(waiting) = self.cleaned_up().await? {
            return Ok(Some(waiting));
        }
        self.release_secrets().await?;
        if let Some(waiting) = self.all(self.facts.capi.cluster()).await? {
            return Ok(Some(waiting));
        }
        self.release_deployments().await?;
        self.outside().await?;
        // Endpoints of private links go before the control plane that removes them.
        if let Some(waiting) = self.private_links().await? {
            return Ok(Some(waiting));
        }
        if let Some(waiting) = self.control_plane().await? {
            return Ok(Some(waiting));
        }
        // Until here, controllers have cleaned up in the cloud, which accepts their tokens by these documents.
        if let Some(waiting) = self.oidc_documents().await? {
            return Ok(Some(waiting));
        }
        self.namespace().await
    }

    /// Paused controllers do not clean up; cloud resources are deleted if the annotation requests it.
    async fn unpause(&self) -> Result<(), Error> {
        for cluster in self.list(self.facts.capi.cluster()).await? {
            if cluster.data["spec"]["paused"] == true {
                let patch = json!({ "spec": { "paused": false } });
                cluster.merge(&patch, self.ctx).await?;
            }
        }
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let Some(live) = self.get(resource, &self.facts.id.name).await? else {
            return Ok(());
        };
        let key = CLEANUP_CLOUD_RESOURCES.key();
        let desired = self.facts.annotations().get(key);
        let annotations = live.metadata().annotations.as_ref();
        let found = annotations.and_then(|it| it.get(key));
        let is_paused = live.data["spec"]["pausedUntil"].is_string();
        if desired == found && !is_paused {
            return Ok(());
        }
        let patch = json!({
            "metadata": { "annotations": { key: desired } },
            "spec": { "pausedUntil": null },
        });
        live.merge(&patch, self.ctx).await
    }

    /// Removes the finalizer of Karpenter from the control plane if no controller does: it would hold the cluster forever.
    async fn release_karpenter(&self) -> Result<(), Error> {
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let Some(live) = self.get(resource, &self.facts.id.name).await? else {
            return Ok(());
        };
        let mut finalizers = live.metadata().finalizers.iter().flatten();
        if !finalizers.any(|it| it == names::KARPENTER_FINALIZER) {
            return Ok(());
        }
        let namespace = self.namespace.name();
        let found = self
            .ctx
            .get::<Deployment>(namespace, names::KUBE_API_SERVER)
            .await?;
        if !karpenter::is_given_up(self.facts, found.as_ref()) {
            return Ok(());
        }
        tracing::warn!("Releasing the machines of Karpenter, which no controller can delete");
        live.drop_finalizer(names::KARPENTER_FINALIZER, self.ctx)
            .await
    }

    /// Gives up machines that their provider cannot delete: they would hold the cluster forever. What remains of them in the
    /// cloud is the user's to delete.
    async fn release_orphans(&self) -> Result<(), Error> {
        let platform = infrastructure(self.facts.cluster.spec.platform.type_);
        let Some(orphans) = platform.orphans(self.facts) else {
            return Ok(());
        };
        let now = Timestamp::now();
        for machine in self.list(orphans.resource).await? {
            if (orphans.is_orphaned)(machine.metadata(), &machine.data, now) {
                tracing::warn!(%machine, "Releasing a machine that its provider fails to delete");
                machine.drop_finalizer(orphans.finalizer, self.ctx).await?;
            }
        }
        Ok(())
    }

    /// The cluster's node pools, which are beside it and name it.
    async fn node_pools(&self) -> Step {
        let resource = ApiResource::erase::<NodePool>(&());
        let Id { namespace, name } = &self.facts.id;
        let mut first = None;
        for pool in list(resource.clone(), namespace, self.ctx).await? {
            if pool.data["spec"]["clusterName"] == name.as_str() {
                let pool = Own::of_cluster(&resource, pool);
                first = first.or(pool.delete(self.ctx).await?);
            }
        }
        self.explained(first).await
    }

    /// What the platform's controllers clean up on the infrastructure beside machines: they run as long as the Cluster is
    /// there.
    async fn cleaned_up(&self) -> Step {
        let platform = infrastructure(self.facts.cluster.spec.platform.type_);
        for kind in platform.cleaned_up(self.facts.capi) {
            if let Some(waiting) = self.all(kind).await? {
                return Ok(Some(waiting));
            }
        }
        Ok(None)
    }

    /// Removes the finalizer of the platform's controllers from Secrets once the objects that refer to them are gone. The
    /// controllers end together with the Secrets: no other client would remove it, and the namespace would stay forever.
    async fn release_secrets(&self) -> Result<(), Error> {
        let platform = infrastructure(self.facts.cluster.spec.platform.type_);
        let Some(finalizer) = platform.secret_finalizer() else {
            return Ok(());
        };
        for secret in self.list(ApiResource::erase::<Secret>(&())).await? {
            secret.drop_finalizer(finalizer, self.ctx).await?;
        }
        Ok(())
    }

    /// All objects of a kind that are the cluster's. Of the Clusters of Cluster API, controllers delete all machines first.
    async fn all(&self, resource: ApiResource) -> Step {
        let mut first = None;
        for object in self.list(resource).await? {
            first = first.or(object.delete(self.ctx).await?);
        }
        self.explained(first).await
    }

    /// The private links of the cluster.
    async fn private_links(&self) -> Step {
        let type_ = self.facts.cluster.spec.platform.type_;
        let platform = infrastructure(type_);
        // On AWS, machines are orphans if it does not accept the tokens of the cluster.
        let is_identity_invalid =
            type_ == PlatformType::Aws && platform.orphans(self.facts).is_some();
        let links = private_link::links(type_);
        let mut first = None;
        for link in self.list(links.resource).await? {
            if endpoints::is_given_up(link.metadata(), is_identity_invalid, Timestamp::now()) {
                tracing::warn!(%link, "Releasing an endpoint that the control-plane-operator fails to delete");
                link.drop_finalizer(links.finalizer, self.ctx).await?;
            }
            first = first.or(link.delete(self.ctx).await?);
        }
        self.explained(first).await
    }

    /// The Deployments had to outlive the Cluster; now they can be deleted.
    async fn release_deployments(&self) -> Result<(), Error> {
        for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
            let resource = ApiResource::erase::<Deployment>(&());
            if let Some(live) = self.get(resource, name).await? {
                live.drop_finalizer(names::COMPONENT_FINALIZER, self.ctx)
                    .await?;
            }
        }
        Ok(())
    }

    /// What is not in the control plane's namespace, and would stay behind. It is named by that namespace, so that another
    /// cluster may have it under the same name: the annotation decides.
    async fn outside(&self) -> Result<(), Error> {
        let binding = ApiResource::erase::<ClusterRoleBinding>(&());
        let role = ApiResource::erase::<ClusterRole>(&());
        let namespace = &self.facts.namespace;
        let [approver, signer] = names::signer_roles(namespace);
        for (resource, name) in [
            (&binding, names::crd_reader_binding(namespace)),
            (&binding, names::pki_operator_binding(namespace)),
            (&binding, approver.clone()),
            (&binding, signer.clone()),
            (&role, approver),
            (&role, signer),
        ] {
            self.delete_annotated(resource.clone(), None, &name).await?;
        }
        if self.namespace.is_usable() {
            infra_policy::delete(self.facts, self.ctx).await?;
        }
        let platform = infrastructure(self.facts.cluster.spec.platform.type_);
        for object in platform.external_objects(self.facts) {
            let (namespace, name) = (object.namespace(), object.name());
            self.delete_annotated(object.resource.clone(), namespace, name)
                .await?;
        }
        for object in platform.outdated_objects(self.facts) {
            let namespace = Some(object.namespace.as_str());
            self.delete_annotated(object.resource, namespace, &object.name)
                .await?;
        }
        Ok(())
    }

    async fn delete_annotated(
        &self,
        resource: ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), Error> {
        let api = own::api(&resource, namespace, self.ctx);
        let found = get(&api, &resource, namespace, name).await?;
        let owner = self.facts.id.to_string();
        let own = found.and_then(|it| Own::annotated(&resource, it, &owner));
        if let Some(own) = own {
            own.delete(self.ctx).await?;
        }
        Ok(())
    }

    async fn control_plane(&self) -> Step {
        let resource = ApiResource::erase::<HostedControlPlane>(&());
        let first = match self.get(resource, &self.facts.id.name).await? {
            Some(live) => {
                let is_first = live.metadata().deletion_timestamp.is_none();
                if is_first && self.namespace.owned().is_some() {
                    // The key that proves whose they are goes with the control plane.
                    oidc::claim(self.facts, self.ctx).await?;
                }
                live.delete(self.ctx).await?
            }
            None => None,
        };
        self.explained(first).await
    }

    /// The documents by which AWS validates tokens. The HostedCluster has to be read again after its finalizer was removed.
    async fn oidc_documents(&self) -> Step {
        let cluster = &self.facts.cluster;
        if !oidc::is_recorded(cluster) {
            return Ok(None);
        }
        let deleted = oidc::delete(self.facts, self.ctx).await;
        let (name, detail) = match deleted {
            Ok(()) => {
                let resource = ApiResource::erase::<HostedCluster>(&());
                let object = DynamicObject {
                    types: None,
                    metadata: cluster.metadata.clone(),
                    data: Value::Null,
                };
                let own = Own::of_cluster(&resource, object);
                own.drop_finalizer(oidc::FINALIZER, self.ctx).await?;
                (self.facts.infra_id().to_owned(), None)
            }
            Err((place, problem)) => (place, Some(problem)),
        };
        Ok(Some(Waiting {
            kind: "OIDCDocuments".to_owned(),
            name,
            finalizers: Vec::new(),
            since: None,
            detail,
        }))
    }

    /// The namespace with all that is left, if it is the cluster's now.
    async fn namespace(&self) -> Step {
        if KEEP_NAMESPACE.is_true(self.facts.annotations()) {
            return Ok(None);
        }
        let Id { namespace, name } = &self.facts.id;
        let found = control_plane_namespace::find(&self.ctx.client, namespace, name).await?;
        let Some(owned) = found.owned() else {
            return Ok(None);
        };
        let waiting = Own::namespace(owned).delete(self.ctx).await?;
        let Some(mut waiting) = waiting else {
            return Ok(None);
        };
        waiting.detail = explain::namespace(owned, self.ctx).await?;
        Ok(Some(waiting))
    }

    /// An object of the control plane's namespace, if it is the cluster's.
    async fn get(&self, resource: ApiResource, name: &str) -> Result<Option<Own>, Error> {
        let namespace = Some(self.namespace.name());
        let api = own::api(&resource, namespace, self.ctx);
        let found = get(&api, &resource, namespace, name).await?;
        Ok(found.and_then(|it| self.own(&resource, it)))
    }

    /// The objects of a kind in the control plane's namespace that are the cluster's.
    async fn list(&self, resource: ApiResource) -> Result<Vec<Own>, Error> {
        let found = list(resource.clone(), self.namespace.name(), self.ctx).await?;
        let own = found.into_iter().filter_map(|it| self.own(&resource, it));
        Ok(own.collect())
    }

    fn own(&self, resource: &ApiResource, object: DynamicObject) -> Option<Own> {
        let owner = self.facts.id.to_string();
        Own::inside(self.namespace, resource, object, &owner)
    }

    async fn explained(&self, waiting: Option<Waiting>) -> Step {
        let Some(mut waiting) = waiting else {
            return Ok(None);
        };
        // Machines of other clusters do not matter here.
        if self.namespace.owned().is_some() {
            waiting.detail = explain::holder(&waiting, self.facts, self.ctx).await?;
        }
        Ok(Some(waiting))
    }
}

/// An object by its name; `None` also if the kind is not served.
async fn get(
    api: &Api<DynamicObject>,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<DynamicObject>, Error> {
    match api.get_opt(name).await {
        Ok(found) => Ok(found),
        Err(error) if is_missing(&error) => Ok(None),
        Err(source) => {
            let place = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
            let what = format!("{} {place}{name}", resource.kind);
            Err(Error::Read { what, source })
        }
    }
}

/// The objects of a kind in a namespace; none where the kind is not.
pub(super) async fn list(
    resource: ApiResource,
    namespace: &str,
    ctx: &Context,
) -> Result<Vec<DynamicObject>, Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        Err(source) => Err(Error::list(format!("{} in {namespace}", resource.plural))(
            source,
        )),
    }
}

/// The last step: removes the finalizer.
pub(super) async fn remove_finalizer(cluster: &DynamicObject, ctx: &Context) -> Result<(), Error> {
    let resource = ApiResource::erase::<HostedCluster>(&());
    let own = Own::of_cluster(&resource, cluster.clone());
    own.drop_finalizer(names::FINALIZER, ctx).await
}

#[cfg(test)]
mod tests;
