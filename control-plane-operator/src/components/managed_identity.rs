//! Managed identities of Azure, for operators that read the certificate of theirs from a file.

use api::hypershift::v1beta1::platform::azure::identity::{
    AzureControlPlaneManagedIdentities, AzureManagedIdentity,
};
use control_plane_component::{Context, Error, Result};
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::Value;

use super::cloud::azure;
use super::edit;

/// The environment variable with the file of the certificate.
pub(super) const FILE: &str = "MANAGED_AZURE_HCP_CREDENTIALS_FILE_PATH";

/// The certificate of an operator's identity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Certificate {
    /// Its `SecretProviderClass`.
    pub(super) class: &'static str,
    /// The volume with its file.
    pub(super) volume: &'static str,
    /// The field with the identity.
    pub(super) field: &'static str,
    /// The identity, if the cluster has one.
    pub(super) identity: fn(&AzureControlPlaneManagedIdentities) -> Option<&AzureManagedIdentity>,
}

// === impl Certificate ===

impl Certificate {
    /// Mounts the certificate in a container, if the cluster uses managed identities.
    pub(super) fn mount(
        &self,
        context: &Context<'_>,
        pod: &mut PodSpec,
        container: &str,
    ) -> Result<()> {
        if !azure::uses_managed_identities(context) {
            return Ok(());
        }
        let file = azure::certificate(self.of(context)?)?;
        edit::env(edit::container(pod, container)?, FILE, file);
        azure::mount_certificate(pod, container, self.volume, self.class)
    }

    /// Sets the spec of the `SecretProviderClass`.
    pub(super) fn class(&self, context: &Context<'_>, class: &mut Value) -> Result<()> {
        class["spec"] = azure::secret_provider_class(context, self.of(context)?)?;
        Ok(())
    }

    fn of<'a>(&self, context: &Context<'a>) -> Result<&'a AzureManagedIdentity> {
        let identities = azure::managed_identities(context)?;
        (self.identity)(identities).ok_or_else(|| {
            let what = format!("managedIdentities.controlPlane.{}", self.field);
            Error::missing("field spec.platform.azure.azureAuthenticationConfig", what)
        })
    }
}
