//! Virtual machines of a node pool on Azure.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::Usage;
use crate::create::cluster::args::{Arch, name_of};

/// Flags of virtual machines.
#[derive(Debug, Clone, Args)]
pub(in crate::create) struct AzureNodeArgs {
    #[arg(
        long,
        value_name = "SIZE",
        help = "Size of the virtual machines [default: Standard_D4s_v5, or Standard_D4ps_v5 for arm64]"
    )]
    instance_type: Option<String>,

    /// Size of the disks in GiB
    #[arg(long, value_name = "GIB", default_value_t = 120, value_parser = clap::value_parser!(i32).range(16..=32767))]
    root_disk_size: i32,

    /// Storage of the disks
    #[arg(long, value_enum, default_value_t = Storage::Premium)]
    disk_storage_account_type: Storage,

    /// Resource ID of the disk encryption set
    #[arg(long, value_name = "ID")]
    disk_encryption_set_id: Option<String>,

    /// Put the disks on the hosts of the virtual machines
    #[arg(long)]
    enable_ephemeral_disk: bool,

    /// Encryption of disks and caches on the host [default: Enabled]
    #[arg(long, value_enum)]
    encryption_at_host: Option<Switch>,

    /// Generation of the image in the marketplace [default: Gen2]
    #[arg(long, value_enum)]
    image_generation: Option<Generation>,

    /// Publisher of the image in the marketplace [default: the image of the release]
    #[arg(long, value_name = "NAME", requires_all = ["marketplace_offer", "marketplace_sku", "marketplace_version"])]
    marketplace_publisher: Option<String>,

    /// Offer of that image
    #[arg(long, value_name = "NAME", requires = "marketplace_publisher")]
    marketplace_offer: Option<String>,

    /// SKU of that image
    #[arg(long, value_name = "NAME", requires = "marketplace_publisher")]
    marketplace_sku: Option<String>,

    /// Version of that image
    #[arg(long, value_name = "VERSION", requires = "marketplace_publisher")]
    marketplace_version: Option<String>,

    /// Storage of boot diagnostics [default: Disabled]
    #[arg(long, value_enum)]
    diagnostics_storage_account_type: Option<Diagnostics>,

    /// URI of the storage account, for --diagnostics-storage-account-type=UserManaged
    #[arg(long, value_name = "URI")]
    diagnostics_storage_account_uri: Option<String>,
}

/// Storage of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Storage {
    #[value(name = "Premium_LRS")]
    Premium,
    #[value(name = "PremiumV2_LRS")]
    PremiumV2,
    #[value(name = "Standard_LRS")]
    Standard,
    #[value(name = "StandardSSD_LRS")]
    StandardSsd,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Switch {
    Enabled,
    Disabled,
}

/// Generation of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Generation {
    Gen1,
    Gen2,
}

/// Storage of boot diagnostics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Diagnostics {
    /// None
    Disabled,
    /// Of Azure
    Managed,
    /// Of yours
    UserManaged,
}

/// Where machines are.
#[derive(Debug, Clone, Copy)]
pub(in crate::create) struct AzurePlace<'p> {
    pub(in crate::create) arch: Arch,
    pub(in crate::create) subnet: &'p str,
    pub(in crate::create) zone: Option<&'p str>,
    /// The image that infrastructure tools have uploaded.
    pub(in crate::create) boot_image: Option<&'p str>,
}

// === impl AzureNodeArgs ===

impl AzureNodeArgs {
    /// `spec.platform` of a NodePool.
    pub(in crate::create) fn platform(&self, place: &AzurePlace<'_>) -> Result<Value, Usage> {
        let usual = match place.arch {
            Arch::Arm64 => "Standard_D4ps_v5",
            Arch::Amd64 | Arch::Ppc64le | Arch::S390x => "Standard_D4s_v5",
        };
        let mut azure = json!({
            "vmSize": self.instance_type.as_deref().unwrap_or(usual),
            "image": self.image(place.boot_image),
            "osDisk": self.disk(),
            "subnetID": place.subnet,
        });
        if let Some(zone) = place.zone {
            azure["availabilityZone"] = json!(zone);
        }
        if let Some(switch) = self.encryption_at_host {
            azure["encryptionAtHost"] = json!(name_of(switch));
        }
        if let Some(diagnostics) = self.diagnostics()? {
            azure["diagnostics"] = diagnostics;
        }
        Ok(json!({ "type": "Azure", "azure": azure }))
    }

    fn image(&self, boot_image: Option<&str>) -> Value {
        let mut marketplace = json!({});
        if let Some(publisher) = &self.marketplace_publisher {
            marketplace = json!({
                "publisher": publisher,
                "offer": self.marketplace_offer,
                "sku": self.marketplace_sku,
                "version": self.marketplace_version,
            });
        } else if let Some(id) = boot_image {
            return json!({ "type": "ImageID", "imageID": id });
        }
        if let Some(generation) = self.image_generation {
            marketplace["imageGeneration"] = json!(name_of(generation));
        }
        if marketplace == json!({}) {
            return json!({ "type": "AzureMarketplace" });
        }
        json!({ "type": "AzureMarketplace", "azureMarketplace": marketplace })
    }

    fn disk(&self) -> Value {
        let mut disk = json!({
            "sizeGiB": self.root_disk_size,
            "diskStorageAccountType": name_of(self.disk_storage_account_type),
        });
        if let Some(id) = &self.disk_encryption_set_id {
            disk["encryptionSetID"] = json!(id);
        }
        if self.enable_ephemeral_disk {
            disk["persistence"] = json!("Ephemeral");
        }
        disk
    }

    fn diagnostics(&self) -> Result<Option<Value>, Usage> {
        let given = (
            self.diagnostics_storage_account_type,
            &self.diagnostics_storage_account_uri,
        );
        let diagnostics = match given {
            (None, None) => return Ok(None),
            (Some(Diagnostics::UserManaged), Some(uri)) => json!({
                "storageAccountType": "UserManaged",
                "userManaged": { "storageAccountURI": uri },
            }),
            (Some(Diagnostics::UserManaged), None) => {
                return Err(Usage::new(
                    &"--diagnostics-storage-account-type=UserManaged needs --diagnostics-storage-account-uri",
                ));
            }
            (_, Some(_)) => {
                return Err(Usage::new(
                    &"--diagnostics-storage-account-uri needs --diagnostics-storage-account-type=UserManaged",
                ));
            }
            (Some(kind), None) => json!({ "storageAccountType": name_of(kind) }),
        };
        Ok(Some(diagnostics))
    }
}
