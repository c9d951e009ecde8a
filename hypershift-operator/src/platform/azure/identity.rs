//! The identities that components of a cluster have on Azure, and the one of Cluster API's controllers.

use api::hypershift::v1beta1::platform::azure::identity::{
    AzureAuthenticationType, AzureControlPlaneManagedIdentities, AzureManagedIdentity,
    AzureWorkloadIdentities,
};
use api::hypershift::v1beta1::platform::azure::{AzureCloud, AzurePlatformSpec};
use control_plane_component::azure::certificate;
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::facts::Facts;

/// The identity that manages machines.
#[derive(Debug, Clone, Copy)]
pub(super) enum MachineIdentity<'a> {
    /// A managed identity, whose certificate is mounted from a key vault.
    Managed(&'a AzureManagedIdentity),
    /// The client ID of a workload identity, which trusts tokens of the hosted cluster.
    Workload(&'a str),
}

/// Whether components use managed identities.
pub(crate) fn uses_managed(azure: &AzurePlatformSpec) -> bool {
    let authentication = &azure.azure_authentication_config;
    authentication.azure_authentication_config_type == AzureAuthenticationType::ManagedIdentities
}

/// The managed identities, if the cluster uses them.
pub(super) fn managed(azure: &AzurePlatformSpec) -> Option<&AzureControlPlaneManagedIdentities> {
    let identities = &azure.azure_authentication_config.managed_identities;
    let identities = identities.as_ref().filter(|_| uses_managed(azure));
    identities.map(|identities| &identities.control_plane)
}

/// The workload identities, if the cluster uses them.
pub(super) fn workload(azure: &AzurePlatformSpec) -> Option<&AzureWorkloadIdentities> {
    let identities = &azure.azure_authentication_config.workload_identities;
    identities.as_ref().filter(|_| !uses_managed(azure))
}

/// The identity that manages machines; nothing if the specification lacks it.
pub(super) fn of_machines(azure: &AzurePlatformSpec) -> Option<MachineIdentity<'_>> {
    if let Some(identities) = managed(azure) {
        return Some(MachineIdentity::Managed(&identities.node_pool_management));
    }
    let client = &workload(azure)?.node_pool_management.client_id;
    Some(MachineIdentity::Workload(&client.0))
}

/// The name of a cloud for managed identities; nothing for a cloud without them.
pub(crate) fn cloud_type(cloud: AzureCloud) -> Option<&'static str> {
    match cloud {
        AzureCloud::PublicCloud => Some("public"),
        AzureCloud::UsGovernmentCloud => Some("usgovernment"),
        AzureCloud::ChinaCloud => Some("china"),
        AzureCloud::GermanCloud | AzureCloud::BleuCloud | AzureCloud::StackCloud => None,
    }
}

/// The `AzureClusterIdentity` of the cluster, which only its own namespace may use. Nothing if the identity is missing or
/// invalid, which validation reports.
pub(super) fn desired(facts: &Facts, azure: &AzurePlatformSpec) -> Option<Desired> {
    let mut spec = specific(azure)?;
    spec["tenantID"] = json!(azure.tenant_id);
    spec["allowedNamespaces"] = json!({ "list": [facts.namespace] });
    let (kind, name) = (super::cluster_identity(facts.capi), &facts.id.name);
    let fields = json!({ "spec": spec });
    Some(Desired::of(kind, &facts.namespace, name, fields))
}

fn specific(azure: &AzurePlatformSpec) -> Option<Value> {
    match of_machines(azure)? {
        MachineIdentity::Managed(identity) => Some(json!({
            "type": "UserAssignedIdentityCredential",
            // The CRD requires the field; the provider reads the identity from the file instead.
            "clientID": "",
            "userAssignedIdentityCredentialsCloudType": cloud_type(azure.cloud)?,
            "userAssignedIdentityCredentialsPath": certificate(identity).ok()?,
        })),
        MachineIdentity::Workload(client_id) => {
            Some(json!({ "type": "WorkloadIdentity", "clientID": client_id }))
        }
    }
}

/// What the specification lacks of the identities, and names of certificates that are not valid.
pub(super) fn problems(facts: &Facts, azure: &AzurePlatformSpec) -> Vec<String> {
    const AUTHENTICATION: &str = "spec.platform.azure.azureAuthenticationConfig";
    let required = |section: &str, type_: &str| {
        format!(
            "{AUTHENTICATION}.{section} is required with azureAuthenticationConfigType {type_}: set it"
        )
    };
    if !uses_managed(azure) {
        let is_missing = workload(azure).is_none();
        let problem = is_missing.then(|| required("workloadIdentities", "WorkloadIdentities"));
        return problem.into_iter().collect();
    }
    let Some(identities) = managed(azure) else {
        return vec![required("managedIdentities", "ManagedIdentities")];
    };
    let AzureControlPlaneManagedIdentities {
        managed_identities_key_vault: _,
        cloud_provider,
        node_pool_management,
        control_plane_operator,
        image_registry,
        ingress,
        network,
        disk,
        file,
    } = identities;
    let all = [
        ("cloudProvider", Some(cloud_provider)),
        ("nodePoolManagement", Some(node_pool_management)),
        ("controlPlaneOperator", Some(control_plane_operator)),
        ("imageRegistry", image_registry.as_ref()),
        ("ingress", Some(ingress)),
        ("network", Some(network)),
        ("disk", Some(disk)),
        ("file", Some(file)),
    ];
    let place = format!("{AUTHENTICATION}.managedIdentities.controlPlane");
    let invalid = all.into_iter().filter_map(|(field, identity)| {
        let problem = certificate(identity?).err()?;
        Some(format!("{place}.{field}: {problem}"))
    });
    let no_registry = (super::credentials::has_registry(facts) && image_registry.is_none())
        .then(|| {
            format!(
                "{place}.imageRegistry is required while capability ImageRegistry is enabled: set it, or create the \
                 cluster without the capability"
            )
        });
    invalid.chain(no_registry).collect()
}
