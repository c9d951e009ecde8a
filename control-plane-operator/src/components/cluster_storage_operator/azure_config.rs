//! Configuration of the storage drivers for Azure.

use api::hypershift::v1beta1::platform::azure::identity::{
    AzureControlPlaneManagedIdentities, AzureManagedIdentity, AzureWorkloadIdentities,
    AzureWorkloadIdentity,
};
use control_plane_component::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Secret};
use serde_json::Value;

use super::super::cloud::azure::{self, CloudConfig};
use super::super::{edit, kubeconfig};

/// Key of the configuration file.
const KEY: &str = "cloud.conf";
/// The variables with the classes of the drivers' certificates.
const CLASSES: [(&str, &str); 2] = [
    (
        "ARO_HCP_SECRET_PROVIDER_CLASS_FOR_DISK",
        "managed-azure-disk-csi",
    ),
    (
        "ARO_HCP_SECRET_PROVIDER_CLASS_FOR_FILE",
        "managed-azure-file-csi",
    ),
];
pub(super) const DISK: Driver = Driver {
    workload: |identities| &identities.disk,
    managed: |identities| &identities.disk,
};
pub(super) const FILE: Driver = Driver {
    workload: |identities| &identities.file,
    managed: |identities| &identities.file,
};

/// The identity of a driver, which is of one of two kinds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Driver {
    workload: fn(&AzureWorkloadIdentities) -> &AzureWorkloadIdentity,
    managed: fn(&AzureControlPlaneManagedIdentities) -> &AzureManagedIdentity,
}

/// Passes on the names of the classes: the operator mounts them in the drivers' controllers.
pub(super) fn classes(context: &Context<'_>, operator: &mut Container) {
    if azure::uses_managed_identities(context) {
        for (variable, class) in CLASSES {
            edit::env(operator, variable, class);
        }
    }
}

// === impl Driver ===

impl Driver {
    /// Writes the configuration file.
    pub(super) fn config(self, context: &Context<'_>, secret: &mut Secret) -> Result<()> {
        let mut config = CloudConfig::of(azure::platform(context)?)?;
        if azure::uses_managed_identities(context) {
            let identity = (self.managed)(azure::managed_identities(context)?);
            config.aad_msi_data_plane_identity_path = azure::certificate(identity)?;
        } else {
            let identity = (self.workload)(azure::workload_identities(context)?);
            config.federate(&identity.client_id.0);
        }
        kubeconfig::put(secret, KEY, config.text());
        Ok(())
    }

    /// Sets the spec of the `SecretProviderClass`.
    pub(super) fn class(self, context: &Context<'_>, class: &mut Value) -> Result<()> {
        let identity = (self.managed)(azure::managed_identities(context)?);
        class["spec"] = azure::secret_provider_class(context, identity)?;
        Ok(())
    }
}
