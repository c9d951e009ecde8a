//! Machines on Azure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, rule, with};

/// Machines on Azure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureNodePoolPlatform {
    /// The size of the machines, such as `Standard_D4s_v5`.
    #[schemars(
        length(max = 255),
        regex(
            pattern = r"^(Standard_|Basic_)?[A-Z]+[0-9]+(-[0-9]+)?[abdilmptsCNP]*(_[A-Z]*[0-9]+[A-Z]*)?(_v[0-9]+)?$"
        )
    )]
    pub vm_size: String,
    /// The image that machines start from.
    pub image: AzureImage,
    /// The disk that holds the operating system.
    pub os_disk: AzureOsDisk,
    /// The availability zone: 1, 2 or 3. Unset: the machines are in no zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 255),
        transform = rule(
            "self == '1' || self == '2' || self == '3'",
            "availabilityZone must be 1, 2 or 3"
        ),
    )]
    pub availability_zone: Option<String>,
    /// Encrypts disks and caches on the host itself as well. The subscription has to have the feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Enabled"))]
    pub encryption_at_host: Option<AzureEncryptionAtHost>,
    /// The subnet that the machines are in, by its full resource id.
    #[serde(rename = "subnetID")]
    #[schemars(
        length(min = 1, max = 355),
        transform = rule(
            "self.matches('^/subscriptions/.*/resourceGroups/.*/providers/Microsoft.Network/virtualNetworks/.*/subnets/.*$') && size(self.split('/')) == 11",
            "subnetID must be a subnet's resource id: /subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Network/virtualNetworks/<network>/subnets/<subnet>"
        ),
        transform = rule(
            "size(self.split('/')) > 2 && self.split('/')[2].matches('^[{]?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}[}]?$')",
            "the subscription in subnetID must be a UUID: copy the id from the Azure portal or from az network vnet subnet show"
        ),
        transform = rule(
            r"size(self.split('/')) > 4 && self.split('/')[4].matches(r'[-0-9A-Za-z_().]')",
            "the resource group in subnetID must be 1 to 90 letters, digits and -_(). long"
        ),
        transform = rule(
            "size(self.split('/')) > 4 && !self.split('/')[4].endsWith('.')",
            "the resource group in subnetID cannot end with a dot: check the name"
        ),
        transform = rule(
            r"size(self.split('/')) > 8 && self.split('/')[8].matches(r'[-0-9A-Za-z_.]{2}')",
            "the network in subnetID must be 2 to 64 letters, digits and -_. long"
        ),
        transform = rule(
            "size(self.split('/')) > 8 && !self.split('/')[8].matches('[-.]$')",
            "the network in subnetID cannot end with a dot or a dash: check the name"
        ),
        transform = rule(
            "size(self.split('/')) > 10 && self.split('/')[10].matches('[0-9A-Za-z]')",
            "the subnet in subnetID must be 1 to 80 letters, digits and -_. long and begin with a letter or digit"
        ),
        transform = rule(
            "size(self.split('/')) > 10 && !self.split('/')[10].matches('[-.]$')",
            "the subnet in subnetID cannot end with a dot or a dash: check the name"
        ),
        transform = immutable("subnetID cannot change: create a NodePool in the other subnet and remove this one"),
    )]
    pub subnet_id: String,
    /// Where the machines' boot logs go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<AzureDiagnostics>,
}

/// Whether disks and caches are encrypted on the host itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureEncryptionAtHost {
    /// They are.
    Enabled,
    /// They are not; disks are still encrypted where they are stored.
    Disabled,
}

/// The image that machines start from: of the subscription, or of the marketplace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.imageID) == (self.type == 'ImageID')",
        "imageID goes with type ImageID, and with no other: fill it in for that type, or remove it"
    ),
    transform = rule(
        "self.type == 'AzureMarketplace' || !has(self.azureMarketplace)",
        "azureMarketplace goes with type AzureMarketplace only: remove it, or change type"
    ),
)]
pub struct AzureImage {
    /// Where the image is.
    #[serde(rename = "type")]
    pub type_: AzureImageType,
    /// The full resource id of the image.
    #[serde(rename = "imageID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub image_id: Option<String>,
    /// The image of the marketplace. Unset: the one that belongs to the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azure_marketplace: Option<AzureMarketplaceImage>,
}

/// Where an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureImageType {
    /// In the subscription.
    #[serde(rename = "ImageID")]
    ImageId,
    /// In the marketplace.
    AzureMarketplace,
}

/// An image of the marketplace, by its full name, or only by its generation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(self.imageGeneration) || [has(self.publisher), has(self.offer), has(self.sku), has(self.version)].all(given, given)",
        "name the image: give imageGeneration, or publisher, offer, sku and version"
    ),
    transform = rule(
        "[has(self.publisher), has(self.offer), has(self.sku), has(self.version)].all(given, given) || ![has(self.publisher), has(self.offer), has(self.sku), has(self.version)].exists(given, given)",
        "publisher, offer, sku and version belong together: give all four or none"
    ),
    transform = with("minProperties", 1),
)]
pub struct AzureMarketplaceImage {
    /// The generation of the machines' firmware, where the image is the release's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Gen2"))]
    pub image_generation: Option<AzureImageGeneration>,
    /// Who publishes the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 3, max = 50),
        regex(pattern = "^[a-z0-9][a-z0-9-_]{2,49}$")
    )]
    pub publisher: Option<String>,
    /// The publisher's offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub offer: Option<String>,
    /// The plan within the offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255), regex(pattern = "^[a-z0-9-_]+$"))]
    pub sku: Option<String>,
    /// The image's version, such as `4.20.0`, or `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 32),
        regex(pattern = r"^[0-9]+\.[0-9]+\.[0-9]+$|^latest$")
    )]
    pub version: Option<String>,
}

/// The generation of machines' firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureImageGeneration {
    /// BIOS.
    Gen1,
    /// UEFI.
    Gen2,
}

/// The disk that holds the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureOsDisk {
    /// The size in GiB. Unset: the operator's default of 30, or more where the image needs it.
    #[serde(rename = "sizeGiB", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 32767))]
    pub size_gib: Option<i32>,
    /// The kind of disk. Unset: Premium_LRS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_storage_account_type: Option<AzureDiskType>,
    /// The disk encryption set with the key of the disk, by its full resource ID. Unset: a key of the platform.
    #[serde(
        rename = "encryptionSetID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(min = 1, max = 285),
        transform = rule(
            "self.matches('^/subscriptions/.*/resourceGroups/.*/providers/Microsoft.Compute/diskEncryptionSets/.*$') && size(self.split('/')) == 9",
            "encryptionSetID must be a resource id: /subscriptions/<subscription>/resourceGroups/<group>/providers/Microsoft.Compute/diskEncryptionSets/<set>"
        ),
        transform = rule(
            "size(self.split('/')) > 2 && self.split('/')[2].matches('^[{]?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}[}]?$')",
            "the subscription in encryptionSetID must be a UUID: copy the id from the Azure portal or from az disk-encryption-set show"
        ),
        transform = rule(
            r"size(self.split('/')) > 4 && self.split('/')[4].matches(r'[-0-9A-Za-z_().]')",
            "the resource group in encryptionSetID must be 1 to 90 letters, digits and -_(). long"
        ),
        transform = rule(
            "size(self.split('/')) > 4 && !self.split('/')[4].endsWith('.')",
            "the resource group in encryptionSetID cannot end with a dot: check the name"
        ),
        transform = rule(
            "size(self.split('/')) > 8 && self.split('/')[8].matches('[-0-9A-Za-z_]')",
            "the name of the set in encryptionSetID must be 1 to 80 letters, digits and -_ long"
        ),
    )]
    pub encryption_set_id: Option<String>,
    /// Whether the disk outlives a stop of the machine. Unset: Persistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<AzureDiskPersistence>,
}

/// A kind of disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureDiskType {
    /// A solid-state disk for production.
    #[serde(rename = "Premium_LRS")]
    PremiumLrs,
    /// A solid-state disk with independent size and speed.
    #[serde(rename = "PremiumV2_LRS")]
    PremiumV2Lrs,
    /// A rotating disk.
    #[serde(rename = "Standard_LRS")]
    StandardLrs,
    /// A solid-state disk for light use.
    #[serde(rename = "StandardSSD_LRS")]
    StandardSsdLrs,
}

/// Whether a disk outlives a stop of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureDiskPersistence {
    /// It is kept.
    Persistent,
    /// It is on the host and is deleted with the machine. Faster, for machines that can be replaced.
    Ephemeral,
}

/// Where machines' boot logs go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = rule(
    "has(self.userManaged) == (self.storageAccountType == 'UserManaged')",
    "userManaged goes with storageAccountType UserManaged, and with no other: fill it in for that type, or remove it"
))]
pub struct AzureDiagnostics {
    /// Whose storage account takes the logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Disabled"))]
    pub storage_account_type: Option<AzureDiagnosticsStorage>,
    /// Your storage account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_managed: Option<AzureUserManagedStorage>,
}

/// Whose storage account takes boot logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureDiagnosticsStorage {
    /// Azure's own.
    Managed,
    /// Yours; it has to be in the region of the machines.
    UserManaged,
    /// None: there are no boot logs.
    Disabled,
}

/// Your storage account for boot logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AzureUserManagedStorage {
    /// The account's blob endpoint, such as `https://example.blob.core.windows.net/`.
    #[serde(rename = "storageAccountURI")]
    #[schemars(
        length(max = 1024),
        transform = rule(
            "isURL(self) && url(self).getScheme() == 'https'",
            "storageAccountURI must be a URL that begins with https://"
        ),
    )]
    pub storage_account_uri: String,
}
