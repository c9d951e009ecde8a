//! Status of the hosted cluster in the HostedControlPlane: nodes, release, and connectivity.

mod connection;
mod version;

use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use support::reconcile::is_missing;

use super::context::Context;
use super::control_plane;
use super::error::Error;

/// Updates the status.
pub(super) async fn pass(ctx: &Context) -> Result<(), Error> {
    // Of any release, so that an upgrade is reported from its start.
    let Some(object) = ctx.any_control_plane().await? else {
        return Ok(());
    };
    let nodes = ctx.nodes().await?;
    let kubelet = connection::check_kubelet(ctx, &nodes).await;
    let cluster_version = cluster_version(ctx).await?;
    let generation = object.metadata.generation;
    control_plane::write(&ctx.control_planes(), &object, |status| {
        status["nodeCount"] = json!(nodes.len());
        let (versions, mut conditions) = version::of(status, cluster_version.as_ref(), generation);
        if let Some(versions) = versions {
            status["versionStatus"] = versions;
        }
        conditions.extend(connection::conditions(&kubelet));
        control_plane::set(status, &conditions, generation, Timestamp::now());
    })
    .await
}

/// Returns the ClusterVersion of the hosted cluster, if it exists.
async fn cluster_version(ctx: &Context) -> Result<Option<DynamicObject>, Error> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusterversions");
    let api: Api<DynamicObject> = Api::all_with(ctx.guest.clone(), &resource);
    match api.get_opt("version").await {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.map_err(Error::client("get ClusterVersion version")),
    }
}
