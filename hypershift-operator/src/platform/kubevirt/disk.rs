//! The disk of virtual machines: how it is stored, and the image that it starts from.

use api::annotations::node_pool::ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS;
use api::hypershift::v1beta1::common::Quantity;
use api::hypershift::v1beta1::node_pool::{
    KubevirtAccessMode, KubevirtCaching, KubevirtNodePoolPlatform, KubevirtVolumeMode, NodePool,
};
use serde_json::{Value, json};

use super::machines::{Form, invalid, vm_namespace};
use crate::platform::machines::{Inputs, Refused};

/// The name of the disk, its volume and its `DataVolume`.
pub(super) const NAME: &str = "rhcos";
/// Label of volumes with the operating system of machines.
pub(super) const OPERATING_SYSTEM: &str = "hypershift.openshift.io/is-kubevirt-rhcos";
const SIZE: &str = "32Gi";
/// Before the digest in the reference of an image.
const DIGEST: &str = "@sha256:";

/// The image that disks start from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image {
    /// The source of a `DataVolume`.
    pub(super) source: Value,
    /// The SHA-256 of the image. `None` if it may become another one: then no copy of it is kept.
    pub(super) hash: Option<String>,
}

/// The template of the `DataVolume` of each machine.
pub(super) fn data_volume(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
    form: Form,
) -> Result<Value, Refused> {
    let mut metadata = json!({ "name": NAME });
    if form == Form::Current {
        metadata["labels"] = json!({ OPERATING_SYSTEM: "true" });
    }
    let spec = json!({ "source": source(inputs, kubevirt, form)?, "storage": storage(kubevirt) });
    Ok(json!({ "metadata": metadata, "spec": spec }))
}

/// How the disk is stored.
pub(super) fn storage(kubevirt: &KubevirtNodePoolPlatform) -> Value {
    let volume = kubevirt.root_volume.persistent.clone().unwrap_or_default();
    let size = volume.size.unwrap_or_else(|| Quantity(SIZE.to_owned()));
    let mut storage = json!({ "resources": { "requests": { "storage": size } } });
    if let Some(class) = &volume.storage_class {
        storage["storageClassName"] = json!(class);
    }
    if !volume.access_modes.is_empty() {
        let modes = volume.access_modes.iter();
        storage["accessModes"] = json!(modes.map(|it| access_mode(*it)).collect::<Vec<_>>());
    }
    if let Some(mode) = volume.volume_mode {
        storage["volumeMode"] = json!(volume_mode(mode));
    }
    storage
}

/// The image and whether a copy of it is kept. `None` if a pool wants none, or its image has no digest.
pub(super) fn cached(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
) -> Result<Option<(Image, String)>, Refused> {
    let strategy = kubevirt.root_volume.cache_strategy.as_ref();
    if strategy.is_none_or(|it| it.type_ != KubevirtCaching::Pvc) {
        return Ok(None);
    }
    let image = image(inputs, kubevirt)?;
    let hash = image.hash.clone();
    Ok(hash.map(|hash| (image, hash)))
}

/// The source of the disk: a copy of the image, or the image itself.
fn source(
    inputs: &Inputs<'_>,
    kubevirt: &KubevirtNodePoolPlatform,
    form: Form,
) -> Result<Value, Refused> {
    // Earlier versions kept no copies.
    if form == Form::Earlier || cached(inputs, kubevirt)?.is_none() {
        return image(inputs, kubevirt).map(|it| it.source);
    }
    let name = copy_name(inputs.pool).ok_or_else(|| {
        invalid(
            "spec.platform.kubevirt.rootVolume.cacheStrategy is PVC, and there is no copy of the boot image: wait \
             until it is created, or set the type to None"
                .to_owned(),
        )
    })?;
    Ok(json!({ "pvc": { "name": name, "namespace": vm_namespace(inputs) } }))
}

fn image(inputs: &Inputs<'_>, kubevirt: &KubevirtNodePoolPlatform) -> Result<Image, Refused> {
    let own = kubevirt.root_volume.disk_image.as_ref();
    if let Some(image) = own.and_then(|it| it.container_disk_image.as_deref()) {
        return Ok(Image::of_registry(image));
    }
    let arch = inputs.pool.spec.arch;
    let stream = inputs.release.boot_images.as_ref();
    let found = stream.and_then(|it| it.kubevirt(arch));
    if let Some(image) = found.filter(|it| it.contains("@sha")) {
        return Ok(Image::of_registry(image));
    }
    let annotations = inputs.pool.metadata.annotations.as_ref();
    let is_allowed =
        annotations.is_some_and(|it| ALLOW_UNSUPPORTED_KUBEVIRT_RHCOS_VARIANTS.is_set(it));
    let other = stream.filter(|_| is_allowed);
    if let Some(disk) = other.and_then(|it| it.openstack(arch)) {
        return Ok(Image {
            source: json!({ "http": { "url": disk.location } }),
            hash: Some(disk.sha256.clone()),
        });
    }
    let version = &inputs.release.version;
    let problem = match found {
        Some(image) => {
            format!("the disk of release {version} for KubeVirt, {image}, has no digest")
        }
        None => format!("release {version} has no disk for KubeVirt"),
    };
    Err(Refused::no_image(format!(
        "{problem}: set spec.platform.kubevirt.rootVolume.diskImage"
    )))
}

/// The volume with the copy.
fn copy_name(pool: &NodePool) -> Option<&str> {
    let platform = pool.status.as_ref()?.platform.as_ref()?;
    let name = platform.kube_virt.as_ref()?.cache_name.as_deref()?;
    Some(name).filter(|it| !it.is_empty())
}

fn access_mode(mode: KubevirtAccessMode) -> &'static str {
    match mode {
        KubevirtAccessMode::ReadWriteOnce => "ReadWriteOnce",
        KubevirtAccessMode::ReadWriteMany => "ReadWriteMany",
        KubevirtAccessMode::ReadOnly => "ReadOnlyMany",
        KubevirtAccessMode::ReadWriteOncePod => "ReadWriteOncePod",
    }
}

fn volume_mode(mode: KubevirtVolumeMode) -> &'static str {
    match mode {
        KubevirtVolumeMode::Filesystem => "Filesystem",
        KubevirtVolumeMode::Block => "Block",
    }
}

// === impl Image ===

impl Image {
    fn of_registry(image: &str) -> Self {
        let registry = json!({ "url": format!("docker://{image}"), "pullMethod": "node" });
        Self {
            source: json!({ "registry": registry }),
            hash: image.split_once(DIGEST).map(|(_, hash)| hash.to_owned()),
        }
    }
}
