//! The end of a hosted cluster: what belongs to it goes in an order in which whoever cleans up is still there.
//!
//! Each pass begins at the first step and stops at the first that has to be waited for; what it waits for is told. The
//! order: node pools, the Cluster with its machines, the Deployments that worked for it, what is outside of the
//! namespace, the control plane, the namespace.

mod explain;

use std::time::Duration;

use api::annotations::cluster::{CLEANUP_CLOUD_RESOURCES, DESTROY_GRACE_PERIOD, KEEP_NAMESPACE};
use api::hypershift::v1beta1::{AwsEndpointService, HostedCluster, HostedControlPlane, NodePool};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use support::apply::Deletion;
use support::reconcile::is_missing;

use super::dereference::{get, namespace_owner};
use super::facts::{Facts, Owner};
use super::names;
use crate::context::Context;
use crate::error::Error;
use crate::platform::infrastructure;
pub(super) use explain::Waiting;

/// How a deletion went on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something has to go first.
    Waiting(Waiting),
    /// All is gone. The object stays for this long, if somebody asked for it.
    Gone(Duration),
}

type Step = Result<Option<Waiting>, Error>;

/// Takes it as far as it goes.
pub(super) async fn advance(facts: &Facts, ctx: &Context) -> Result<Progress, Error> {
    wake(facts, ctx).await?;
    if let Some(waiting) = node_pools(facts, ctx).await? {
        return Ok(Progress::Waiting(waiting));
    }
    if let Some(waiting) = clusters(facts, ctx).await? {
        return Ok(Progress::Waiting(waiting));
    }
    release_deployments(facts, ctx).await?;
    outside(facts, ctx).await?;
    if let Some(waiting) = private_links(facts, ctx).await? {
        return Ok(Progress::Waiting(waiting));
    }
    if let Some(waiting) = control_plane(facts, ctx).await? {
        return Ok(Progress::Waiting(waiting));
    }
    if let Some(waiting) = namespace(facts, ctx).await? {
        return Ok(Progress::Waiting(waiting));
    }
    let grace = DESTROY_GRACE_PERIOD.get(facts.annotations()).ok().flatten();
    Ok(Progress::Gone(
        grace.map(Duration::from).unwrap_or_default(),
    ))
}

/// What is paused would not clean up, and what the cloud holds goes if somebody asked for it.
async fn wake(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    for cluster in list(facts.capi.cluster(), &facts.namespace, ctx).await? {
        if cluster.data["spec"]["paused"] == true {
            let patch = json!({ "spec": { "paused": false } });
            merge(facts.capi.cluster(), &cluster, &patch, ctx).await?;
        }
    }
    let live = get::<HostedControlPlane>(ctx, &facts.namespace, &facts.id.name).await?;
    let Some(live) = live else {
        return Ok(());
    };
    let key = CLEANUP_CLOUD_RESOURCES.key();
    let wanted = facts.annotations().get(key);
    let told = live
        .metadata
        .annotations
        .as_ref()
        .and_then(|it| it.get(key));
    let unpause = live.spec.paused_until.is_some();
    if wanted == told && !unpause {
        return Ok(());
    }
    let patch = json!({
        "metadata": { "annotations": { key: wanted } },
        "spec": { "pausedUntil": null },
    });
    let resource = ApiResource::erase::<HostedControlPlane>(&());
    let object = DynamicObject {
        types: None,
        metadata: live.metadata,
        data: Value::Null,
    };
    merge(resource, &object, &patch, ctx).await
}

async fn node_pools(facts: &Facts, ctx: &Context) -> Step {
    let resource = ApiResource::erase::<NodePool>(&());
    let pools = list(resource.clone(), &facts.id.namespace, ctx).await?;
    let ours = pools
        .into_iter()
        .filter(|pool| pool.data["spec"]["clusterName"] == facts.id.name.as_str());
    let mut first = None;
    for pool in ours {
        let waiting = delete(&resource, &facts.id.namespace, &pool, ctx).await?;
        first = first.or(waiting);
    }
    explained(first, facts, ctx).await
}

/// Clusters of Cluster API, whose controllers delete all machines first.
async fn clusters(facts: &Facts, ctx: &Context) -> Step {
    let resource = facts.capi.cluster();
    let mut first = None;
    for cluster in list(resource.clone(), &facts.namespace, ctx).await? {
        let waiting = delete(&resource, &facts.namespace, &cluster, ctx).await?;
        first = first.or(waiting);
    }
    explained(first, facts, ctx).await
}

/// The Deployments had to outlive the Cluster; now they may go.
async fn release_deployments(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    for name in [names::CLUSTER_API, names::CAPI_PROVIDER] {
        let Some(live) = get::<Deployment>(ctx, &facts.namespace, name).await? else {
            continue;
        };
        let resource = ApiResource::erase::<Deployment>(&());
        let object = DynamicObject {
            types: None,
            metadata: live.metadata,
            data: Value::Null,
        };
        drop_finalizer(resource, &object, names::COMPONENT_FINALIZER, ctx).await?;
    }
    Ok(())
}

/// What is not in the control plane's namespace, and would stay behind.
async fn outside(facts: &Facts, ctx: &Context) -> Result<(), Error> {
    let applier = ctx.applier();
    let binding = ApiResource::erase::<ClusterRoleBinding>(&());
    let name = names::crd_reader_binding(&facts.namespace);
    applier.delete(&binding, None, &name).await?;
    let platform = infrastructure(facts.cluster.spec.platform.type_);
    let elsewhere = platform.map(|it| it.elsewhere(facts)).unwrap_or_default();
    for object in elsewhere {
        applier
            .delete(&object.resource, object.namespace(), object.name())
            .await?;
    }
    Ok(())
}

/// Endpoints of AWS go before the control plane that removes them.
async fn private_links(facts: &Facts, ctx: &Context) -> Step {
    let resource = ApiResource::erase::<AwsEndpointService>(&());
    let mut first = None;
    for link in list(resource.clone(), &facts.namespace, ctx).await? {
        let waiting = delete(&resource, &facts.namespace, &link, ctx).await?;
        first = first.or(waiting);
    }
    explained(first, facts, ctx).await
}

async fn control_plane(facts: &Facts, ctx: &Context) -> Step {
    let resource = ApiResource::erase::<HostedControlPlane>(&());
    let deleted = ctx
        .applier()
        .delete(&resource, Some(&facts.namespace), &facts.id.name)
        .await?;
    let first = Waiting::of("HostedControlPlane", &facts.id.name, deleted);
    explained(first, facts, ctx).await
}

/// The namespace with all that is left, if it is the cluster's.
async fn namespace(facts: &Facts, ctx: &Context) -> Step {
    if KEEP_NAMESPACE.is_true(facts.annotations()) {
        return Ok(None);
    }
    match namespace_owner(facts, ctx).await? {
        None | Some(Owner::Other) => return Ok(None),
        Some(Owner::Us) => {}
    }
    let resource = ApiResource::erase::<Namespace>(&());
    let deleted = ctx
        .applier()
        .delete(&resource, None, &facts.namespace)
        .await?;
    let Deletion::Waiting(_) = &deleted else {
        return Ok(None);
    };
    let mut waiting = Waiting::of("Namespace", &facts.namespace, deleted);
    if let Some(waiting) = &mut waiting {
        waiting.detail = explain::namespace(&facts.namespace, ctx).await?;
    }
    Ok(waiting)
}

async fn explained(waiting: Option<Waiting>, facts: &Facts, ctx: &Context) -> Step {
    let Some(mut waiting) = waiting else {
        return Ok(None);
    };
    waiting.detail = explain::holder(&waiting, facts, ctx).await?;
    Ok(Some(waiting))
}

async fn delete(
    resource: &ApiResource,
    namespace: &str,
    object: &DynamicObject,
    ctx: &Context,
) -> Step {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let deleted = ctx
        .applier()
        .delete(resource, Some(namespace), name)
        .await?;
    Ok(Waiting::of(&resource.kind, name, deleted))
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

/// Takes a finalizer off an object, if it is still the one that was read.
pub(super) async fn drop_finalizer(
    resource: ApiResource,
    object: &DynamicObject,
    finalizer: &str,
    ctx: &Context,
) -> Result<(), Error> {
    let found = object.metadata.finalizers.as_deref().unwrap_or_default();
    if found.iter().all(|it| it != finalizer) {
        return Ok(());
    }
    let kept: Vec<_> = found.iter().filter(|it| *it != finalizer).collect();
    let patch = json!({ "metadata": { "finalizers": kept } });
    merge(resource, object, &patch, ctx).await
}

async fn merge(
    resource: ApiResource,
    object: &DynamicObject,
    patch: &Value,
    ctx: &Context,
) -> Result<(), Error> {
    let metadata = &object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let mut patch = patch.clone();
    patch["metadata"]["uid"] = json!(metadata.uid);
    patch["metadata"]["resourceVersion"] = json!(metadata.resource_version);
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, &resource);
    let params = PatchParams {
        field_manager: Some(super::MANAGER_OF_ALL.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(name, &params, &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Ok(()),
        Err(source) => Err(Error::Write {
            object: format!("{} {namespace}/{name}", resource.kind),
            source,
        }),
    }
}

/// The last of it: whoever waits for the HostedCluster to go may go on.
pub(super) async fn let_go(cluster: &DynamicObject, ctx: &Context) -> Result<(), Error> {
    let resource = ApiResource::erase::<HostedCluster>(&());
    drop_finalizer(resource, cluster, names::FINALIZER, ctx).await
}

#[cfg(test)]
mod tests;
