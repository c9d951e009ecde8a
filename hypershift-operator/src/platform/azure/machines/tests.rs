//! Templates of machines on Azure, field by field.

use api::conditions::PoolCondition;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::facts::fixture;
use crate::platform::tests::Case;

const SUBNET: &str = "/subscriptions/subscription/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/vnet/subnets/workers";

/// A pool with these settings in addition to those that are required.
fn pool_with(settings: &Value) -> Case {
    let required = json!({
        "vmSize": "Standard_D4s_v5",
        "image": { "type": "ImageID", "imageID": "/images/1" },
        "osDisk": {},
        "subnetID": SUBNET,
    });
    let azure = fixture::with(required, settings);
    let image = |sku: &str| json!({ "publisher": "azureopenshift", "offer": "aro4", "sku": sku, "version": "420.0.1" });
    let plan = |images: Value| json!({ "rhel-coreos-extensions": { "marketplace": { "azure": { "no-purchase-plan": images } } } });
    let cluster = fixture::hosted_cluster("azure");
    Case::new(cluster, &json!({ "type": "Azure", "azure": azure })).with_boot_images(&json!({
        "x86_64": plan(json!({ "hyperVGen1": image("420-v1"), "hyperVGen2": image("420-v2") })),
        "aarch64": plan(json!({ "hyperVGen2": image("420-arm") })),
    }))
}

/// A pool whose image is chosen from the marketplace.
fn of_marketplace(image: &Value) -> Case {
    let image = json!({ "type": "AzureMarketplace", "azureMarketplace": image });
    pool_with(&json!({ "image": image }))
}

/// The template of a pool with these settings.
fn spec(settings: &Value) -> Value {
    pool_with(settings).machine().unwrap().spec
}

#[test]
fn templates_have_the_defaults_of_the_api() {
    let machine = pool_with(&json!({})).machine().unwrap();
    assert_eq!(machine.template.kind, "AzureMachineTemplate");
    assert_eq!(machine.made.kind, "AzureMachine");
    assert!(machine.live.is_empty() && machine.notes.is_empty());
    let expected = json!({
        "image": { "id": "/images/1" },
        "networkInterfaces": [{ "subnetName": "workers" }],
        "osDisk": {
            "diskSizeGB": 30,
            "managedDisk": { "storageAccountType": "Premium_LRS" },
            "osType": "Linux",
        },
        "securityProfile": { "encryptionAtHost": true },
        "sshPublicKey": STANDARD.encode(SSH_KEY),
        "vmSize": "Standard_D4s_v5",
    });
    assert_eq!(machine.spec, expected);
}

#[test]
fn every_setting_gets_into_the_template() {
    let set = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/diskEncryptionSets/d";
    for (settings, field, expected) in [
        (
            json!({ "vmSize": "Standard_E8s_v5" }),
            "/vmSize",
            json!("Standard_E8s_v5"),
        ),
        (
            json!({ "osDisk": { "sizeGiB": 120 } }),
            "/osDisk/diskSizeGB",
            json!(120),
        ),
        (
            json!({ "osDisk": { "diskStorageAccountType": "PremiumV2_LRS" } }),
            "/osDisk/managedDisk",
            json!({ "storageAccountType": "PremiumV2_LRS" }),
        ),
        (
            json!({ "osDisk": { "diskStorageAccountType": "Standard_LRS" } }),
            "/osDisk/managedDisk",
            json!({ "storageAccountType": "Standard_LRS" }),
        ),
        (
            json!({ "osDisk": { "diskStorageAccountType": "StandardSSD_LRS" } }),
            "/osDisk/managedDisk",
            json!({ "storageAccountType": "StandardSSD_LRS" }),
        ),
        (
            json!({ "osDisk": { "encryptionSetID": set } }),
            "/osDisk/managedDisk",
            json!({ "storageAccountType": "Premium_LRS", "diskEncryptionSet": { "id": set } }),
        ),
        (
            json!({ "osDisk": { "persistence": "Ephemeral" } }),
            "/osDisk",
            json!({
                "diskSizeGB": 30,
                "managedDisk": { "storageAccountType": "Premium_LRS" },
                "osType": "Linux",
                "cachingType": "ReadOnly",
                "diffDiskSettings": { "option": "Local" },
            }),
        ),
        (
            json!({ "osDisk": { "persistence": "Persistent" } }),
            "/osDisk/cachingType",
            json!(null),
        ),
        (
            json!({ "availabilityZone": "2" }),
            "/failureDomain",
            json!("2"),
        ),
        (
            json!({ "availabilityZone": "" }),
            "/failureDomain",
            json!(null),
        ),
        (
            json!({ "encryptionAtHost": "Enabled" }),
            "/securityProfile",
            json!({ "encryptionAtHost": true }),
        ),
        (
            json!({ "encryptionAtHost": "Disabled" }),
            "/securityProfile",
            json!(null),
        ),
        (
            json!({ "diagnostics": { "storageAccountType": "Managed" } }),
            "/diagnostics",
            json!({ "boot": { "storageAccountType": "Managed" } }),
        ),
        (
            json!({ "diagnostics": { "storageAccountType": "Disabled" } }),
            "/diagnostics",
            json!({ "boot": { "storageAccountType": "Disabled" } }),
        ),
        (
            json!({ "diagnostics": {
                "storageAccountType": "UserManaged",
                "userManaged": { "storageAccountURI": "https://logs.blob.core.windows.net/" },
            } }),
            "/diagnostics",
            json!({ "boot": {
                "storageAccountType": "UserManaged",
                "userManaged": { "storageAccountURI": "https://logs.blob.core.windows.net/" },
            } }),
        ),
        (json!({ "diagnostics": {} }), "/diagnostics", json!(null)),
    ] {
        let spec = spec(&settings);
        let found = spec.pointer(field).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{settings}");
        let is_new = pool_with(&settings).machine().unwrap().hash()
            != pool_with(&json!({})).machine().unwrap().hash();
        let default = self::spec(&json!({}));
        assert_eq!(is_new, spec != default, "nodes are replaced: {settings}");
    }
}

#[test]
fn nodes_get_the_identity_that_pulls_from_a_private_registry() {
    let identity = "/subscriptions/s/resourcegroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/pull";
    let mut case = pool_with(&json!({}));
    let plain = case.machine().unwrap();
    assert_eq!(plain.spec.get("identity"), None);
    let registry = json!({ "credentials": {
        "type": "ManagedIdentity", "managedIdentity": { "resourceID": identity },
    } });
    let azure = case.cluster.spec.platform.azure.as_mut().unwrap();
    azure.container_registry = serde_json::from_value(registry).unwrap();
    let machine = case.machine().unwrap();
    assert_eq!(machine.spec["identity"], "UserAssigned");
    // What the provider passes on to Azure is the ID without `azure://`.
    let expected = json!([{ "providerID": format!("azure://{identity}") }]);
    assert_eq!(machine.spec["userAssignedIdentities"], expected);
    assert_ne!(machine.hash(), plain.hash());
}

#[test]
fn images_are_of_the_pool_or_of_the_release() {
    let marketplace = |publisher: &str, offer: &str, sku: &str, version: &str| {
        json!({ "marketplace": {
            "publisher": publisher, "offer": offer, "sku": sku, "version": version, "thirdPartyImage": false,
        } })
    };
    let own = json!({ "publisher": "pub", "offer": "offer", "sku": "sku", "version": "1.2.3" });
    let of_release = |sku: &str| marketplace("azureopenshift", "aro4", sku, "420.0.1");
    for (name, image, arch, version, expected) in [
        (
            "own",
            own.clone(),
            "amd64",
            "4.20.1",
            marketplace("pub", "offer", "sku", "1.2.3"),
        ),
        (
            "own, old",
            own,
            "amd64",
            "4.18.3",
            marketplace("pub", "offer", "sku", "1.2.3"),
        ),
        ("none", json!(null), "amd64", "4.20.1", of_release("420-v2")),
        (
            "no generation",
            json!({}),
            "amd64",
            "4.20.1",
            of_release("420-v2"),
        ),
        (
            "Gen1",
            json!({ "imageGeneration": "Gen1" }),
            "amd64",
            "4.20.1",
            of_release("420-v1"),
        ),
        (
            "Gen2",
            json!({ "imageGeneration": "Gen2" }),
            "amd64",
            "4.20.1",
            of_release("420-v2"),
        ),
        (
            "nightly",
            json!({}),
            "amd64",
            "4.20.0-0.nightly-2026-01-01-000000",
            of_release("420-v2"),
        ),
        ("5.0", json!({}), "amd64", "5.0.0", of_release("420-v2")),
        ("arm64", json!({}), "arm64", "4.20.1", of_release("420-arm")),
    ] {
        let mut case = of_marketplace(&image).with_arch(arch);
        case.release.version = version.parse().unwrap();
        assert_eq!(case.machine().unwrap().spec["image"], expected, "{name}");
    }
}

#[test]
fn pools_without_image_are_refused() {
    for (name, image, arch, version, expected) in [
        (
            "an old release",
            json!({ "type": "AzureMarketplace" }),
            "amd64",
            "4.19.9",
            "release 4.19.9 has no image of generation Gen2 for Amd64 in the marketplace: set publisher",
        ),
        (
            "a generation that the architecture lacks",
            json!({ "type": "AzureMarketplace", "azureMarketplace": { "imageGeneration": "Gen1" } }),
            "arm64",
            "4.20.1",
            "release 4.20.1 has no image of generation Gen1 for Arm64 in the marketplace",
        ),
        (
            "an architecture that the release lacks",
            json!({ "type": "AzureMarketplace" }),
            "ppc64le",
            "4.20.1",
            "for Ppc64le in the marketplace",
        ),
        (
            "no ID",
            json!({ "type": "ImageID" }),
            "amd64",
            "4.20.1",
            "spec.platform.azure.image.imageID is required: set it",
        ),
        (
            "an empty ID",
            json!({ "type": "ImageID", "imageID": "" }),
            "amd64",
            "4.20.1",
            "spec.platform.azure.image.imageID is required: set it",
        ),
    ] {
        let mut case = pool_with(&json!({ "image": image })).with_arch(arch);
        case.release.version = version.parse().unwrap();
        let refused = case.machine().unwrap_err();
        assert_eq!(
            refused.condition,
            PoolCondition::ValidPlatformImage,
            "{name}"
        );
        assert!(refused.message.contains(expected), "{name}: {refused}");
    }
    let mut bare = of_marketplace(&json!({}));
    bare.release.boot_images = None;
    assert!(bare.machine().is_err(), "a release without boot images");
}

#[test]
fn invalid_settings_of_pools_are_refused() {
    let mut none = pool_with(&json!({}));
    none.pool.spec.platform.azure = None;
    for (name, case, expected) in [
        (
            "no settings",
            none,
            "spec.platform.azure is required: set it",
        ),
        (
            "the name of a subnet",
            pool_with(&json!({ "subnetID": "workers" })),
            "invalid value \"workers\" for spec.platform.azure.subnetID: write /subscriptions/",
        ),
        (
            "no account for logs",
            pool_with(&json!({ "diagnostics": { "storageAccountType": "UserManaged" } })),
            "diagnostics.userManaged is required with storageAccountType UserManaged: set it",
        ),
    ] {
        let refused = case.machine().unwrap_err();
        assert_eq!(
            refused.condition,
            PoolCondition::ValidMachineTemplate,
            "{name}"
        );
        assert_eq!(refused.reason, "InvalidConfiguration", "{name}");
        assert!(refused.message.contains(expected), "{name}: {refused}");
    }
}
