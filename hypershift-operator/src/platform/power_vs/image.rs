//! The boot image of a release: the provider imports it from a bucket into the cluster's workspace. Pools of one release
//! share it.

use api::annotations::node_pool::NODE_POOL;
use api::group::CLUSTER_NAME;
use api::hypershift::v1beta1::node_pool::{
    Arch, PowerVsImageDeletePolicy, PowerVsNodePoolPlatform, PowerVsStorageType,
};
use kube::api::ApiResource;
use payload::boot_images::PowerVsObject;
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::names::node_pool as names;
use crate::platform::machines::Inputs;

/// The region of Cloud Object Storage for regions of Power Virtual Server that are not named otherwise.
const OTHER_REGIONS: &str = "us-south";

/// The kind of the object.
pub(crate) fn resource(capi: Capi) -> ApiResource {
    capi.infrastructure(super::VERSION, "IBMPowerVSImage", "ibmpowervsimages")
}

/// What the release has for the cluster's region, if it has an image there.
pub(super) fn of_release<'a>(inputs: &Inputs<'a>) -> Option<&'a PowerVsObject> {
    let cluster = inputs.cluster.spec.platform.powervs.as_ref()?;
    let stream = inputs.release.boot_images.as_ref()?;
    stream.powervs(Arch::Ppc64le, storage_region(&cluster.region))
}

/// The name of the object that imports it.
pub(super) fn name(image: &PowerVsObject) -> String {
    image.release.replace('.', "-")
}

/// The object that imports it, if the release has an image for the cluster's region.
pub(crate) fn desired(inputs: &Inputs<'_>) -> Option<(ApiResource, Value)> {
    let cluster = inputs.cluster.spec.platform.powervs.as_ref()?;
    let image = of_release(inputs)?;
    let pool = inputs.pool.spec.platform.powervs.clone();
    let PowerVsNodePoolPlatform {
        storage_type,
        image_delete_policy,
        system_type: _,
        processor_type: _,
        processors: _,
        memory_gib: _,
        image: _,
    } = pool.unwrap_or_default();
    let object = json!({
        "metadata": {
            "namespace": inputs.namespace,
            "name": name(image),
            "annotations": {
                CLUSTER_NAME: inputs.infra_id,
                NODE_POOL.key(): names::reference(inputs.pool),
            },
        },
        "spec": {
            "bucket": image.bucket,
            // The provider looks for its own cluster object, which has another name than the Cluster.
            "clusterName": inputs.cluster.metadata.name,
            "deletePolicy": policy(image_delete_policy.unwrap_or(PowerVsImageDeletePolicy::Delete)),
            "object": image.object,
            "region": storage_region(&cluster.region),
            "serviceInstanceID": cluster.service_instance_id,
            "storageType": storage(storage_type.unwrap_or(PowerVsStorageType::Tier1)),
        },
    });
    Some((resource(inputs.capi), object))
}

/// The region of Cloud Object Storage with the images for a region of Power Virtual Server.
pub(super) fn storage_region(region: &str) -> &'static str {
    match region {
        "eu-de" => "eu-de",
        "lon" => "eu-gb",
        "osa" => "jp-osa",
        "sao" => "br-sao",
        "syd" => "au-syd",
        "tok" => "jp-tok",
        "tor" => "ca-tor",
        "us-east" => "us-east",
        _ => OTHER_REGIONS,
    }
}

fn storage(type_: PowerVsStorageType) -> &'static str {
    match type_ {
        PowerVsStorageType::Tier1 => "tier1",
        PowerVsStorageType::Tier3 => "tier3",
    }
}

fn policy(policy: PowerVsImageDeletePolicy) -> &'static str {
    match policy {
        PowerVsImageDeletePolicy::Delete => "delete",
        PowerVsImageDeletePolicy::Retain => "retain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_in_the_storage_region_of_the_cluster() {
        for (region, expected) in [
            ("dal", "us-south"),
            ("us-south", "us-south"),
            ("eu-de", "eu-de"),
            ("lon", "eu-gb"),
            ("osa", "jp-osa"),
            ("syd", "au-syd"),
            ("sao", "br-sao"),
            ("tor", "ca-tor"),
            ("tok", "jp-tok"),
            ("us-east", "us-east"),
            ("mon", "us-south"),
        ] {
            assert_eq!(storage_region(region), expected, "{region}");
        }
    }
}
