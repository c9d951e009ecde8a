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
use control_plane_component::azure::{self, certificate_mount, certificate_volume};
pub(crate) use control_plane_component::azure::{Resource, certificate};
use control_plane_component::settings::ARO;
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::PodSpec;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::edit;

const AUTHENTICATION: &str = "field spec.platform.azure.azureAuthenticationConfig";

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

/// Spec of a `SecretProviderClass`, with which the CSI driver mounts the certificate of an identity.
pub(crate) fn secret_provider_class(
    context: &Context<'_>,
    identity: &AzureManagedIdentity,
) -> Result<Value> {
    let vault = &managed_identities(context)?.managed_identities_key_vault;
    let client = context.settings.azure_key_vault_client_id.as_deref();
    azure::secret_provider_class(vault, identity, client)
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
    mounts.push(edit::from_json(certificate_mount(volume)));
    let volumes = pod.volumes.get_or_insert_default();
    volumes.push(edit::from_json(certificate_volume(volume, class)));
    Ok(())
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
        let vnet = Resource::vnet(azure)?;
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
