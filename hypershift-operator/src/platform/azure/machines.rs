//! Machines on Azure.

use api::hypershift::v1beta1::node_pool::{
    AzureDiagnosticsStorage, AzureDiskPersistence, AzureDiskType, AzureEncryptionAtHost,
    AzureImageGeneration, AzureImageType, AzureMarketplaceImage, AzureNodePoolPlatform,
    AzureOsDisk,
};
use kube::api::ApiResource;
use payload::boot_images::{HyperVGeneration, MarketplaceImage};
use serde_json::{Value, json};

use crate::capi::Capi;
use crate::platform::machines::{Inputs, Machine, Refused};

/// Default size of the disk in GiB.
const DISK_SIZE: i32 = 30;

/// The kind of the template.
pub(crate) fn template(capi: Capi) -> ApiResource {
    capi.infrastructure("v1beta1", "AzureMachineTemplate", "azuremachinetemplates")
}

/// The machine of a pool.
pub(crate) fn machine(inputs: &Inputs<'_>) -> Result<Machine, Refused> {
    let azure = inputs.pool.spec.platform.azure.as_ref();
    let azure = azure.ok_or_else(|| Refused::invalid("spec.platform.azure is required: set it"))?;
    let subnet = azure.subnet_id.rsplit('/').next().unwrap_or_default();
    let mut spec = json!({
        "image": image(inputs, azure)?,
        "networkInterfaces": [{ "subnetName": subnet }],
        "osDisk": os_disk(&azure.os_disk),
        // SSH keys come with the user data; without a key here, the provider generates one.
        "sshPublicKey": "",
        "vmSize": azure.vm_size,
    });
    if azure.encryption_at_host != Some(AzureEncryptionAtHost::Disabled) {
        spec["securityProfile"] = json!({ "encryptionAtHost": true });
    }
    if let Some(zone) = &azure.availability_zone {
        spec["failureDomain"] = json!(zone);
    }
    if let Some(diagnostics) = diagnostics(azure) {
        spec["diagnostics"] = diagnostics;
    }
    Ok(Machine {
        template: template(inputs.capi),
        made: inputs
            .capi
            .infrastructure("v1beta1", "AzureMachine", "azuremachines"),
        spec,
        live: &[],
        notes: Vec::new(),
    })
}

fn image(inputs: &Inputs<'_>, azure: &AzureNodePoolPlatform) -> Result<Value, Refused> {
    match azure.image.type_ {
        AzureImageType::ImageId => {
            let id = azure.image.image_id.as_ref();
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
    let generation = match generation.unwrap_or(AzureImageGeneration::Gen2) {
        AzureImageGeneration::Gen1 => HyperVGeneration::V1,
        AzureImageGeneration::Gen2 => HyperVGeneration::V2,
    };
    let stream = inputs.release.boot_images.as_ref();
    let found = stream.and_then(|it| it.azure_marketplace(inputs.pool.spec.arch, generation));
    found.cloned().ok_or_else(|| {
        let version = &inputs.release.version;
        Refused::no_image(format!(
            "release {version} has no image in the marketplace: set publisher, offer, sku and version under \
             spec.platform.azure.image.azureMarketplace"
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

fn diagnostics(azure: &AzureNodePoolPlatform) -> Option<Value> {
    let diagnostics = azure.diagnostics.as_ref()?;
    let boot = match diagnostics.storage_account_type? {
        AzureDiagnosticsStorage::Managed => json!({ "storageAccountType": "Managed" }),
        AzureDiagnosticsStorage::Disabled => json!({ "storageAccountType": "Disabled" }),
        AzureDiagnosticsStorage::UserManaged => {
            let uri = diagnostics
                .user_managed
                .as_ref()
                .map(|it| &it.storage_account_uri);
            json!({ "storageAccountType": "UserManaged", "userManaged": { "storageAccountURI": uri } })
        }
    };
    Some(json!({ "boot": boot }))
}

fn disk_type(type_: AzureDiskType) -> &'static str {
    match type_ {
        AzureDiskType::PremiumLrs => "Premium_LRS",
        AzureDiskType::PremiumV2Lrs => "PremiumV2_LRS",
        AzureDiskType::StandardLrs => "Standard_LRS",
        AzureDiskType::StandardSsdLrs => "StandardSSD_LRS",
    }
}
