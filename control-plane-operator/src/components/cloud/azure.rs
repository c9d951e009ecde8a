//! Azure: identities of components, and the configuration file of its cloud provider.
//!
//! Components authenticate with a workload identity, which trusts tokens of the guest, or on Azure Red Hat OpenShift
//! (ARO) with a managed identity, whose certificate a CSI driver mounts from a key vault.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::azure::AzurePlatformSpec;
use api::hypershift::v1beta1::platform::azure::identity::{
    AzureAuthenticationType, AzureControlPlaneManagedIdentities, AzureManagedIdentity,
    AzureWorkloadIdentities,
};
use control_plane_component::settings::ARO;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::PodSpec;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::edit;

const AUTHENTICATION: &str = "field spec.platform.azure.azureAuthenticationConfig";
/// Where certificates of managed identities are mounted.
const CERTIFICATES: &str = "/mnt/certs";
/// Types of resources of the network, nested ones after their parents.
const VNET: &[&str] = &["virtualNetworks"];
const SUBNET: &[&str] = &["virtualNetworks", "subnets"];
const SECURITY_GROUP: &[&str] = &["networkSecurityGroups"];

/// Whether components use managed identities.
pub(crate) fn uses_managed_identities(context: &Context<'_>) -> bool {
    match &context.spec().platform.azure {
        Some(azure) => {
            let authentication = &azure.azure_authentication_config;
            context.is_on(PlatformType::Azure)
                && authentication.azure_authentication_config_type
                    == AzureAuthenticationType::ManagedIdentities
        }
        None => context.settings.managed_service.as_deref() == Some(ARO),
    }
}

/// The managed identities of the control plane.
pub(crate) fn managed_identities<'a>(
    context: &Context<'a>,
) -> Result<&'a AzureControlPlaneManagedIdentities> {
    let identities = platform(context)?
        .azure_authentication_config
        .managed_identities
        .as_ref();
    let identities = identities.map(|identities| &identities.control_plane);
    identities.ok_or_else(|| Error::missing(AUTHENTICATION, "managedIdentities"))
}

/// The workload identities.
pub(crate) fn workload_identities<'a>(
    context: &Context<'a>,
) -> Result<&'a AzureWorkloadIdentities> {
    let identities = &platform(context)?
        .azure_authentication_config
        .workload_identities;
    let identities = identities.as_ref();
    identities.ok_or_else(|| Error::missing(AUTHENTICATION, "workloadIdentities"))
}

/// The settings of the platform.
pub(crate) fn platform<'a>(context: &Context<'a>) -> Result<&'a AzurePlatformSpec> {
    super::section(context.spec().platform.azure.as_ref(), "azure")
}

/// Path of an identity's certificate.
pub(crate) fn certificate(identity: &AzureManagedIdentity) -> Result<String> {
    Ok(format!("{CERTIFICATES}/{}", vault_object(identity)?))
}

/// Spec of a `SecretProviderClass`, with which the CSI driver mounts the certificate of an identity.
pub(crate) fn secret_provider_class(
    context: &Context<'_>,
    identity: &AzureManagedIdentity,
) -> Result<Value> {
    let vault = &managed_identities(context)?.managed_identities_key_vault;
    let encoding = json!(identity.object_encoding);
    // A YAML text within the object: the name is validated, and the encoding is one of three words.
    let objects = format!(
        "\narray:\n  - |\n    objectName: {}\n    objectEncoding: {}\n    objectType: secret\n",
        vault_object(identity)?,
        encoding.as_str().unwrap_or_default(),
    );
    let client = context.settings.azure_key_vault_client_id.as_deref();
    Ok(json!({ "provider": "azure", "parameters": {
        "usePodIdentity": "false",
        "useVMManagedIdentity": "true",
        "userAssignedIdentityID": client.unwrap_or_default(),
        "keyvaultName": vault.name,
        "tenantId": vault.tenant_id,
        "objects": objects,
    } }))
}

/// Mounts the certificate of a `SecretProviderClass` in a container.
pub(crate) fn mount_certificate(
    pod: &mut PodSpec,
    container: &str,
    volume: &str,
    class: &str,
) -> Result<()> {
    let container = edit::container(pod, container)?;
    let mounts = container.volume_mounts.get_or_insert_default();
    mounts.push(edit::from_json(
        json!({ "name": volume, "mountPath": CERTIFICATES, "readOnly": true }),
    ));
    let volumes = pod.volumes.get_or_insert_default();
    volumes.push(edit::from_json(json!({ "name": volume, "csi": {
        "driver": "secrets-store.csi.k8s.io",
        "readOnly": true,
        "volumeAttributes": { "secretProviderClass": class },
    } })));
    Ok(())
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

/// The configuration file `cloud.conf` of Azure's cloud provider and CSI drivers, which is JSON.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the form of the file")]
pub(crate) struct CloudConfig {
    pub(crate) cloud: String,
    pub(crate) tenant_id: String,
    pub(crate) use_managed_identity_extension: bool,
    pub(crate) use_federated_workload_identity_extension: bool,
    pub(crate) subscription_id: String,
    pub(crate) aad_client_id: String,
    pub(crate) aad_client_secret: String,
    pub(crate) aad_client_cert_path: String,
    pub(crate) aad_federated_token_file: String,
    #[serde(rename = "aadMSIDataPlaneIdentityPath")]
    pub(crate) aad_msi_data_plane_identity_path: String,
    pub(crate) resource_group: String,
    pub(crate) location: String,
    pub(crate) vnet_name: String,
    pub(crate) vnet_resource_group: String,
    pub(crate) subnet_name: String,
    pub(crate) security_group_name: String,
    pub(crate) security_group_resource_group: String,
    pub(crate) route_table_name: String,
    pub(crate) cloud_provider_backoff: bool,
    pub(crate) cloud_provider_backoff_duration: i32,
    pub(crate) use_instance_metadata: bool,
    pub(crate) load_balancer_sku: String,
    #[serde(rename = "disableOutboundSNAT")]
    pub(crate) disable_outbound_snat: bool,
    pub(crate) load_balancer_name: String,
    pub(crate) cluster_service_load_balancer_health_probe_mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_service_shared_load_balancer_health_probe_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_service_shared_load_balancer_health_probe_port: Option<u16>,
    #[serde(
        rename = "userAssignedIdentityID",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) user_assigned_identity_id: Option<String>,
}

// === impl CloudConfig ===

impl CloudConfig {
    /// What the files of all components have: the cloud, and the cluster's place in it.
    pub(crate) fn of(azure: &AzurePlatformSpec) -> Result<Self> {
        let vnet = Resource::parse("vnetID", &azure.vnet_id, VNET)?;
        let cloud = json!(azure.cloud);
        Ok(Self {
            cloud: cloud.as_str().unwrap_or_default().to_owned(),
            tenant_id: azure.tenant_id.clone(),
            subscription_id: azure.subscription_id.clone(),
            resource_group: azure.resource_group.clone(),
            location: azure.location.clone(),
            vnet_name: vnet.name.to_owned(),
            vnet_resource_group: vnet.group.to_owned(),
            ..Self::default()
        })
    }

    /// Authenticates with a workload identity.
    pub(crate) fn federate(&mut self, client_id: &str) {
        self.use_federated_workload_identity_extension = true;
        client_id.clone_into(&mut self.aad_client_id);
        super::TOKEN.clone_into(&mut self.aad_federated_token_file);
    }

    /// Formats the file.
    pub(crate) fn text(&self) -> String {
        format!("{:#}", json!(self))
    }
}

/// A resource of the network, by its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resource<'a> {
    /// Its resource group.
    pub(crate) group: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
}

// === impl Resource ===

impl<'a> Resource<'a> {
    /// The subnet of the nodes.
    pub(crate) fn subnet(azure: &'a AzurePlatformSpec) -> Result<Self> {
        Self::parse("subnetID", &azure.subnet_id, SUBNET)
    }

    /// The security group of the nodes' subnet.
    pub(crate) fn security_group(azure: &'a AzurePlatformSpec) -> Result<Self> {
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
            let identity: AzureManagedIdentity = edit::from_json(json!({
                "credentialsSecretName": name, "objectEncoding": "utf-8",
            }));
            assert_eq!(certificate(&identity).is_ok(), expected, "{name:?}");
        }
    }
}
