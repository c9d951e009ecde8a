//! Reads the health of a HostedCluster.

use api::group::CapiTypes;
use api::hypershift::v1beta1::HostedControlPlane;
use control_plane_component::CapiUse;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use serde_json::Value;

use super::health::Health;
use super::workloads::ObservedDeployment;
use crate::capi::Capi;
use crate::context::Context;
use crate::error::Error;

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// The health of a control plane and its machines of these types.
pub(super) async fn health(
    ctx: &Context,
    namespace: &str,
    types: CapiTypes,
) -> Result<Health, Error> {
    let capi = Capi::new(types);
    let kinds = [
        capi.cluster(),
        capi.machine_deployment(),
        capi.machine_set(),
        capi.machine(),
        ApiResource::erase::<HostedControlPlane>(&()),
    ];
    let mut objects = Vec::new();
    for kind in kinds {
        list(ctx, namespace, &kind, &mut objects).await?;
    }
    Ok(Health::of(&objects))
}

async fn list(
    ctx: &Context,
    namespace: &str,
    kind: &ApiResource,
    objects: &mut Vec<Value>,
) -> Result<(), Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client.clone(), namespace, kind);
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&params).await;
        let list = list.map_err(Error::list(format!("{} in {namespace}", kind.plural)))?;
        let of_kind = |object: DynamicObject| {
            let mut value = object.data;
            value["kind"] = Value::from(kind.kind.as_str());
            value
        };
        objects.extend(list.items.into_iter().map(of_kind));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// A container that was restarted in its new pod. The managers count as ready when they
/// have listed all objects through their proxy, so availability without restarts implies that the proxy works.
pub(super) fn restarts(seen: &[ObservedDeployment]) -> Option<String> {
    let watched = seen.iter().filter(|one| one.capi == CapiUse::Proxied);
    for pod in watched.flat_map(|one| &one.pods) {
        let status = pod.status.clone().unwrap_or_default();
        let init = status.init_container_statuses.into_iter().flatten();
        let containers = status.container_statuses.into_iter().flatten();
        for container in init.chain(containers) {
            if container.restart_count > 0 {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                return Some(format!(
                    "container {} of pod {name} was restarted {} times",
                    container.name, container.restart_count
                ));
            }
        }
    }
    None
}
