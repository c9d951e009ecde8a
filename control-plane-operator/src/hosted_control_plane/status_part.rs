//! Parts of the status that are written beside the passes, each by a field manager of its own.

use api::hypershift::v1beta1::HostedControlPlane;
use kube::api::ApiResource;
use serde_json::{Value, json};
use support::apply::{Applier, Error};

/// Applies a part of the status of the object that was read.
pub(super) async fn write(
    applier: &Applier,
    hcp: &HostedControlPlane,
    part: Value,
) -> Result<(), Error> {
    let metadata = &hcp.metadata;
    let desired = json!({
        "metadata": { "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid },
        "status": part,
    });
    let resource = ApiResource::erase::<HostedControlPlane>(&());
    applier.ensure_status(&resource, desired).await.map(drop)
}
