//! Machines on Azure.

use api::hypershift::v1beta1::node_pool::{
    AzureDiagnosticsStorage, AzureDiskPersistence, AzureDiskType, AzureEncryptionAtHost,
    AzureImageGeneration, AzureImageType, AzureMarketplaceImage, AzureNodePoolPlatform,
    AzureOsDisk,
};
use control_plane_component::azure::Resource;
use k8s_openapi::ByteString;
use payload::Minor;
use payload::boot_images::{HyperVGeneration, MarketplaceImage};
use serde_json::{Value, json};

use crate::platform::machines::{Inputs, Machine, Refused};

/// Default size of the disk in GiB.
const DISK_SIZE: i32 = 30;
/// The first release with images in the marketplace.
const MARKETPLACE: Minor = Minor::of_4(20);
/// Azure makes no virtual machine without an SSH key. SSH keys of users come with the user data; the private key of this one
/// was discarded.
const SSH_KEY: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCW7JpaxoaZ41KJ8NPdSXFRpAsvabDRenueFIoOwaitc0pfPTctsMVVZc8wG++C\
    Iy1xeCaSHxDIYZWYYNMxvSNmk9AmDITR9N28OUL0XX5reuyl2xnw5raSDRjCHhxt2Grap9a2QgTWiNIMUnkJywccq1qAVWcyBse8\
    i+QkDjrCmg7a/OyddZJN2PKrrFTTcProJzSDuSZ+pb4WXbRRk1B0h1glIVaNyTRCnQ+ugVgNLOPhpriJ2x3uRT8fKmnoDG00zEyD\
    NOVr+g0NBGG0uqyxJ3L/0NCdXZ9Rm8Djq/K+pjBtlSsevTc2FoN8AEjj3XISwCQ8241ExEMTyMkSfKEz";

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let azure = inputs.pool.spec.platform.azure.as_ref();
    let azure = azure.ok_or_else(|| Refused::invalid("spec.platform.azure is required: set it"))?;
    let subnet = Resource::subnet_of(&azure.subnet_id);
    let subnet = subnet.map_err(|invalid| Refused::invalid(invalid.to_string()))?;
    let mut spec = json!({
        "image": image(inputs, azure)?,
        "networkInterfaces": [{ "subnetName": subnet.name }],
        "osDisk": os_disk(&azure.os_disk),
        "sshPublicKey": ByteString(SSH_KEY.as_bytes().to_vec()),
        "vmSize": azure.vm_size,
    });
    if azure.encryption_at_host != Some(AzureEncryptionAtHost::Disabled) {
        spec["securityProfile"] = json!({ "encryptionAtHost": true });
    }
    let zone = azure.availability_zone.as_ref();
    if let Some(zone) = zone.filter(|zone| !zone.is_empty()) {
        spec["failureDomain"] = json!(zone);
    }
    if let Some(diagnostics) = diagnostics(azure)? {
        spec["diagnostics"] = diagnostics;
    }
    if let Some(id) = registry_identity(inputs) {
        spec["identity"] = json!("UserAssigned");
        spec["userAssignedIdentities"] = json!([{ "providerID": format!("azure://{id}") }]);
    }
    Ok(Machine {
        template: super::machine_template(inputs.capi),
        made: super::machine(inputs.capi),
        spec,
        live: &[],
        notes: Vec::new(),
    })
}

/// The resource ID of the identity by which nodes pull images from a private registry. It begins with a slash.
fn registry_identity<'a>(inputs: &Inputs<'a>) -> Option<&'a str> {
    let azure = inputs.cluster.spec.platform.azure.as_ref()?;
    let registry = azure.container_registry.as_ref()?;
    let identity = registry.credentials.managed_identity.as_ref()?;
    Some(&identity.resource_id)
}

fn image(inputs: &Inputs<'_>, azure: &AzureNodePoolPlatform) -> Result<Value, Refused> {
    match azure.image.type_ {
        AzureImageType::ImageId => {
            let id = azure.image.image_id.as_ref().filter(|id| !id.is_empty());
            id.map(|id| json!({ "id": id })).ok_or_else(|| {
                Refused::no_image("spec.platform.azure.image.imageID is required: set it")
            })
        }
        AzureImageType::AzureMarketplace => {
            marketplace(inputs, azure.image.azure_marketplace.as_ref())
        }
    }
}

/// The configured image, or the one of the release.
fn marketplace(
    inputs: &Inputs<'_>,
    image: Option<&AzureMarketplaceImage>,
) -> Result<Value, Refused> {
    let AzureMarketplaceImage {
        image_generation,
        publisher,
        offer,
        sku,
        version,
    } = image.cloned().unwrap_or_default();
    let image = match (publisher, offer, sku, version) {
        (Some(publisher), Some(offer), Some(sku), Some(version)) => MarketplaceImage {
            publisher,
            offer,
            sku,
            version,
        },
        _ => of_release(inputs, image_generation)?,
    };
    let MarketplaceImage {
        publisher,
        offer,
        sku,
        version,
    } = image;
    Ok(json!({ "marketplace": {
        "publisher": publisher,
        "offer": offer,
        "sku": sku,
        "version": version,
        "thirdPartyImage": false,
    } }))
}

fn of_release(
    inputs: &Inputs<'_>,
    generation: Option<AzureImageGeneration>,
) -> Result<MarketplaceImage, Refused> {
    let (generation, name) = match generation.unwrap_or(AzureImageGeneration::Gen2) {
        AzureImageGeneration::Gen1 => (HyperVGeneration::V1, "Gen1"),
        AzureImageGeneration::Gen2 => (HyperVGeneration::V2, "Gen2"),
    };
    let (version, arch) = (&inputs.release.version, inputs.pool.spec.arch);
    let stream = inputs.release.boot_images.as_ref();
    let stream = stream.filter(|_| version.minor() >= MARKETPLACE);
    let found = stream.and_then(|it| it.azure_marketplace(arch, generation));
    found.cloned().ok_or_else(|| {
        Refused::no_image(format!(
            "release {version} has no image of generation {name} for {arch:?} in the marketplace: set publisher, offer, sku \
             and version under spec.platform.azure.image.azureMarketplace, or set imageID"
        ))
    })
}

fn os_disk(disk: &AzureOsDisk) -> Value {
    let AzureOsDisk {
        size_gib,
        disk_storage_account_type,
        encryption_set_id,
        persistence,
    } = disk;
    let type_ = disk_storage_account_type.unwrap_or(AzureDiskType::PremiumLrs);
    let mut managed = json!({ "storageAccountType": disk_type(type_) });
    if let Some(id) = encryption_set_id {
        managed["diskEncryptionSet"] = json!({ "id": id });
    }
    let mut root = json!({
        "diskSizeGB": size_gib.unwrap_or(DISK_SIZE),
        "managedDisk": managed,
        "osType": "Linux",
    });
    if *persistence == Some(AzureDiskPersistence::Ephemeral) {
        root["cachingType"] = json!("ReadOnly");
        root["diffDiskSettings"] = json!({ "option": "Local" });
    }
    root
}

fn diagnostics(azure: &AzureNodePoolPlatform) -> Result<Option<Value>, Refused> {
    let Some(diagnostics) = &azure.diagnostics else {
        return Ok(None);
    };
    let boot = match diagnostics.storage_account_type {
        None => return Ok(None),
        Some(AzureDiagnosticsStorage::Managed) => json!({ "storageAccountType": "Managed" }),
        Some(AzureDiagnosticsStorage::Disabled) => json!({ "storageAccountType": "Disabled" }),
        Some(AzureDiagnosticsStorage::UserManaged) => {
            let account = diagnostics.user_managed.as_ref().ok_or_else(|| {
                Refused::invalid(
                    "spec.platform.azure.diagnostics.userManaged is required with storageAccountType UserManaged: set it",
                )
            })?;
            json!({
                "storageAccountType": "UserManaged",
                "userManaged": { "storageAccountURI": account.storage_account_uri },
            })
        }
    };
    Ok(Some(json!({ "boot": boot })))
}

fn disk_type(type_: AzureDiskType) -> &'static str {
    match type_ {
        AzureDiskType::PremiumLrs => "Premium_LRS",
        AzureDiskType::PremiumV2Lrs => "PremiumV2_LRS",
        AzureDiskType::StandardLrs => "Standard_LRS",
        AzureDiskType::StandardSsdLrs => "StandardSSD_LRS",
    }
}

#[cfg(test)]
mod tests;
