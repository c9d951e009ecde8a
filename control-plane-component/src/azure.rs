//! What all programs write alike for hosted clusters on Azure: certificates of managed identities, and resource IDs.

use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use api::hypershift::v1beta1::platform::azure::identity::{
    AzureManagedIdentitiesKeyVault, AzureManagedIdentity,
};
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Where certificates of managed identities are mounted.
const CERTIFICATES: &str = "/mnt/certs";
/// Types of resources of the network, nested ones after their parents.
const VNET: &[&str] = &["virtualNetworks"];
const SUBNET: &[&str] = &["virtualNetworks", "subnets"];
const SECURITY_GROUP: &[&str] = &["networkSecurityGroups"];

/// Path of an identity's certificate. An error if the certificate's name is not a valid one.
pub fn certificate(identity: &AzureManagedIdentity) -> Result<String> {
    Ok(format!("{CERTIFICATES}/{}", vault_object(identity)?))
}

/// Spec of a `SecretProviderClass`, with which the CSI driver mounts the certificate of an identity. It reads the vault as
/// the identity with this client ID. An error if the certificate's name is not a valid one.
pub fn secret_provider_class(
    vault: &AzureManagedIdentitiesKeyVault,
    identity: &AzureManagedIdentity,
    client_id: Option<&str>,
) -> Result<Value> {
    let encoding = json!(identity.object_encoding);
    // A YAML text within the object: the name is validated, and the encoding is one of three words.
    let objects = format!(
        "\narray:\n  - |\n    objectName: {}\n    objectEncoding: {}\n    objectType: secret\n",
        vault_object(identity)?,
        encoding.as_str().unwrap_or_default(),
    );
    Ok(json!({ "provider": "azure", "parameters": {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": client_id.unwrap_or_default(),
        "keyvaultName": vault.name,
        "tenantId": vault.tenant_id,
        "objects": objects,
    } }))
}

/// The volume with the certificate of a `SecretProviderClass`.
pub fn certificate_volume(volume: &str, class: &str) -> Value {
    json!({ "name": volume, "csi": {
        "driver": "secrets-store.csi.k8s.io",
        "readOnly": true,
        "volumeAttributes": { "secretProviderClass": class },
    } })
}

/// The mount of that volume.
pub fn certificate_mount(volume: &str) -> Value {
    json!({ "name": volume, "mountPath": CERTIFICATES, "readOnly": true })
}

/// Name of an identity's certificate in the key vault. It is part of a path, and of a YAML text.
fn vault_object(identity: &AzureManagedIdentity) -> Result<&str> {
    let name = identity.credentials_secret_name.as_str();
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(is_known) {
        return Ok(name);
    }
    Err(Error::Invalid {
        field: "credentialsSecretName of a managed identity".to_owned(),
        value: name.to_owned(),
        hint: "write letters, digits and hyphens".to_owned(),
    })
}

/// A resource of the network, by its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource<'a> {
    /// Its resource group.
    pub group: &'a str,
    /// Its name.
    pub name: &'a str,
}

// === impl Resource ===

impl<'a> Resource<'a> {
    /// The virtual network of the nodes.
    pub fn vnet(azure: &'a AzurePlatformSpec) -> Result<Self> {
        Self::parse("vnetID", &azure.vnet_id, VNET)
    }

    /// The subnet of the nodes.
    pub fn subnet(azure: &'a AzurePlatformSpec) -> Result<Self> {
        Self::subnet_of(&azure.subnet_id)
    }

    /// The subnet with this ID, the value of `spec.platform.azure.subnetID` of a HostedCluster or a NodePool.
    pub fn subnet_of(id: &'a str) -> Result<Self> {
        Self::parse("subnetID", id, SUBNET)
    }

    /// The security group of the nodes' subnet.
    pub fn security_group(azure: &'a AzurePlatformSpec) -> Result<Self> {
        Self::parse("securityGroupID", &azure.security_group_id, SECURITY_GROUP)
    }

    /// Parses `/subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Network/TYPE/NAME`, where types may be
    /// nested. Azure compares words of IDs without case.
    fn parse(field: &str, id: &'a str, types: &[&str]) -> Result<Self> {
        let invalid = || Error::Invalid {
            field: format!("spec.platform.azure.{field}"),
            value: id.to_owned(),
            hint: format!(
                "write /subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Network/{}/NAME",
                types.join("/NAME/")
            ),
        };
        let parts: Vec<_> = id.split('/').collect();
        let head = [
            "",
            "subscriptions",
            "",
            "resourceGroups",
            "",
            "providers",
            "Microsoft.Network",
        ];
        let nested = types.iter().flat_map(|type_| [*type_, ""]);
        let pattern: Vec<_> = head.into_iter().chain(nested).collect();
        let is_match = parts.len() == pattern.len()
            && parts[0].is_empty()
            && parts.iter().zip(&pattern).skip(1).all(|(part, word)| {
                !part.is_empty() && (word.is_empty() || part.eq_ignore_ascii_case(word))
            });
        match (parts.get(4), parts.last()) {
            (Some(group), Some(name)) if is_match => Ok(Self { group, name }),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_ids_are_parsed_by_type() {
        let id = |rest: &str| format!("/subscriptions/s/resourceGroups/g/providers/{rest}");
        for (id, types, expected) in [
            (id("Microsoft.Network/virtualNetworks/v"), VNET, Some("v")),
            (id("microsoft.network/VIRTUALNETWORKS/v"), VNET, Some("v")),
            (
                id("Microsoft.Network/virtualNetworks/v/subnets/n"),
                SUBNET,
                Some("n"),
            ),
            (
                id("Microsoft.Network/networkSecurityGroups/n"),
                SECURITY_GROUP,
                Some("n"),
            ),
            (id("Microsoft.Network/networkSecurityGroups/n"), VNET, None),
            (id("Microsoft.Compute/virtualNetworks/v"), VNET, None),
            (id("Microsoft.Network/virtualNetworks/"), VNET, None),
            (
                id("Microsoft.Network/virtualNetworks/v/subnets/n"),
                VNET,
                None,
            ),
            (
                "/subscriptions/s/resourceGroups//providers/Microsoft.Network/virtualNetworks/v"
                    .to_owned(),
                VNET,
                None,
            ),
            ("v".to_owned(), VNET, None),
            (String::new(), VNET, None),
        ] {
            let found = Resource::parse("vnetID", &id, types).ok();
            let expected = expected.map(|name| Resource { group: "g", name });
            assert_eq!(found, expected, "{id}");
        }
    }

    /// Check T16: a name is not a way to other objects of the vault, or out of the directory.
    #[test]
    fn names_of_certificates_cannot_add_objects() {
        for (name, expected) in [
            ("cloud-provider", true),
            ("a\n    objectName: b", false),
            ("../a", false),
            ("", false),
        ] {
            let identity = json!({ "credentialsSecretName": name, "objectEncoding": "utf-8" });
            let identity: AzureManagedIdentity = serde_json::from_value(identity).unwrap();
            assert_eq!(certificate(&identity).is_ok(), expected, "{name:?}");
            let vault = AzureManagedIdentitiesKeyVault::default();
            let class = secret_provider_class(&vault, &identity, None);
            assert_eq!(class.is_ok(), expected, "{name:?}");
        }
    }
}
