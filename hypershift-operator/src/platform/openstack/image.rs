//! The boot image of a release: controllers of the provider download it into the cloud. Pools of one release share it.

use api::annotations::node_pool::NODE_POOL;
use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::names::node_pool as names;
use crate::platform::machines::Inputs;

/// The group of the controllers' kinds. It is not one of Cluster API.
pub(super) const GROUP: &str = "openstack.k-orc.cloud";
const VERSION: &str = "v1alpha1";
/// What the controllers put on images, and on the Secrets with credentials that images refer to.
pub(super) const FINALIZER: &str = "openstack.k-orc.cloud/image";
/// The name of the image's disk in the metadata of releases.
const PLATFORM: &str = "openstack";

/// The kind of the object.
pub(crate) fn resource() -> ApiResource {
    ApiResource {
        api_version: format!("{GROUP}/{VERSION}"),
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: "Image".to_owned(),
        plural: "images".to_owned(),
    }
}

/// The name of the object that imports the release's image, if the release has one.
pub(super) fn name(inputs: &Inputs<'_>) -> Option<String> {
    let stream = inputs.release.boot_images.as_ref()?;
    let release = stream.artifact_release(inputs.pool.spec.arch, PLATFORM)?;
    Some(format!("rhcos-{release}"))
}

/// The object that imports it, for a pool that does not name an image of its own.
pub(crate) fn desired(inputs: &Inputs<'_>) -> Option<(ApiResource, Value)> {
    let pool = inputs.pool.spec.platform.openstack.as_ref()?;
    let cluster = inputs.cluster.spec.platform.openstack.as_ref()?;
    if pool.image_name.is_some() {
        return None;
    }
    let stream = inputs.release.boot_images.as_ref()?;
    let disk = stream.openstack(inputs.pool.spec.arch)?;
    let name = name(inputs)?;
    let cluster_name = inputs.cluster.metadata.name.as_deref().unwrap_or_default();
    let download = json!({
        "url": disk.location,
        "decompress": "gz",
        "hash": { "algorithm": "sha256", "value": disk.sha256 },
    });
    let object = json!({
        "metadata": {
            "namespace": inputs.namespace,
            "name": name,
            "annotations": { NODE_POOL.key(): names::reference(inputs.pool) },
        },
        "spec": {
            "cloudCredentialsRef": {
                "secretName": cluster.identity_ref.name,
                "cloudName": cluster.identity_ref.cloud_name,
            },
            "resource": {
                "name": format!("{cluster_name}-{name}"),
                "content": { "containerFormat": "bare", "diskFormat": "qcow2", "download": download },
            },
        },
    });
    Some((resource(), object))
}
