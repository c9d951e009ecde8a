//! Machines on Google Cloud.

use api::hypershift::v1beta1::node_pool::{
    GcpBootDisk, GcpDiskType, GcpNodePoolPlatform, GcpNodeServiceAccount, GcpOnHostMaintenance,
    GcpProvisioningModel,
};
use api::hypershift::v1beta1::platform::gcp::GcpPlatformSpec;
use serde_json::{Value, json};

use crate::names::node_pool as names;
use crate::platform::machines::{Inputs, Machine, Refused};

/// What processes on machines may do by default, as OAuth scopes.
const SCOPES: [&str; 6] = [
    "devstorage.read_only",
    "logging.write",
    "monitoring.write",
    "servicecontrol",
    "service.management.readonly",
    "trace.append",
];

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let pool = inputs.pool.spec.platform.gcp.as_ref();
    let pool = pool.ok_or_else(|| Refused::invalid("spec.platform.gcp is required: set it"))?;
    let cluster = inputs.cluster.spec.platform.gcp.as_ref();
    let cluster = cluster.ok_or_else(|| Refused::elsewhere("GCP"))?;
    let disk = pool.boot_disk.clone().unwrap_or_default();
    let mut spec = json!({
        "additionalLabels": labels(inputs, pool, cluster),
        "additionalMetadata": metadata(inputs),
        "additionalNetworkTags": network_tags(inputs, pool),
        "image": image(inputs, pool)?,
        "instanceType": pool.machine_type,
        "onHostMaintenance": maintenance(pool),
        "rootDeviceSize": disk.disk_size_gb,
        "rootDeviceType": disk_type(disk.disk_type),
        "subnet": pool.subnet,
    });
    if let Some(key) = key(&disk) {
        spec["rootDiskEncryptionKey"] = key;
    }
    if let Some(account) = &pool.service_account {
        spec["serviceAccounts"] = service_account(account);
    }
    match pool.provisioning_model {
        GcpProvisioningModel::Standard => spec["provisioningModel"] = json!("Standard"),
        GcpProvisioningModel::Spot => spec["provisioningModel"] = json!("Spot"),
        GcpProvisioningModel::Preemptible => spec["preemptible"] = json!(true),
    }
    Ok(Machine {
        template: super::machine_template(inputs.capi),
        made: super::machine(inputs.capi),
        spec,
        live: &["additionalLabels"],
        notes: Vec::new(),
    })
}

fn labels(inputs: &Inputs<'_>, pool: &GcpNodePoolPlatform, cluster: &GcpPlatformSpec) -> Value {
    let lists = [cluster.resource_labels.as_slice(), &pool.resource_labels];
    json!(super::labels(cluster_name(inputs), inputs.infra_id, &lists))
}

fn cluster_name<'a>(inputs: &Inputs<'a>) -> &'a str {
    inputs.cluster.metadata.name.as_deref().unwrap_or_default()
}

fn metadata(inputs: &Inputs<'_>) -> Value {
    json!([
        { "key": "hypershift-cluster", "value": cluster_name(inputs) },
        { "key": "hypershift-infra-id", "value": inputs.infra_id },
        { "key": "hypershift-nodepool", "value": names::of(inputs.pool) },
    ])
}

/// The user's tags, and the one that the cloud controller manager opens firewalls for. Tags are in lower case.
fn network_tags(inputs: &Inputs<'_>, pool: &GcpNodePoolPlatform) -> Vec<String> {
    let own = format!("{}-worker", inputs.infra_id).to_lowercase();
    let given = pool.network_tags.iter().map(|tag| tag.0.clone());
    given
        .filter(|tag| *tag != own)
        .chain([own.clone()])
        .collect()
}

fn image(inputs: &Inputs<'_>, pool: &GcpNodePoolPlatform) -> Result<String, Refused> {
    if let Some(image) = &pool.image {
        return Ok(image.clone());
    }
    let arch = inputs.pool.spec.arch;
    let stream = inputs.release.boot_images.as_ref();
    stream.and_then(|it| it.gcp(arch)).ok_or_else(|| {
        let version = &inputs.release.version;
        Refused::no_image(format!(
            "release {version} has no image for {arch:?} on Google Cloud: set spec.platform.gcp.image"
        ))
    })
}

fn maintenance(pool: &GcpNodePoolPlatform) -> &'static str {
    match (pool.on_host_maintenance, pool.provisioning_model) {
        (Some(GcpOnHostMaintenance::Terminate), _)
        | (None, GcpProvisioningModel::Spot | GcpProvisioningModel::Preemptible) => "Terminate",
        (Some(GcpOnHostMaintenance::Migrate), _) | (None, GcpProvisioningModel::Standard) => {
            "Migrate"
        }
    }
}

fn disk_type(type_: GcpDiskType) -> &'static str {
    match type_ {
        GcpDiskType::Standard => "pd-standard",
        GcpDiskType::Ssd => "pd-ssd",
        GcpDiskType::Balanced => "pd-balanced",
    }
}

fn key(disk: &GcpBootDisk) -> Option<Value> {
    let key = &disk.encryption_key.as_ref()?.kms_key_name;
    Some(json!({ "keyType": "Managed", "managedKey": { "kmsKeyName": key } }))
}

fn service_account(account: &GcpNodeServiceAccount) -> Value {
    let default = || SCOPES.map(|scope| format!("https://www.googleapis.com/auth/{scope}"));
    let scopes = match account.scopes.as_slice() {
        [] => json!(default()),
        given => json!(given),
    };
    let mut account = json!({ "email": account.email, "scopes": scopes });
    if account["email"].is_null() {
        account["email"] = json!("default");
    }
    account
}

#[cfg(test)]
mod tests;
