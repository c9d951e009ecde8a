//! Azure, run by oneself with workload identities, or as Azure Red Hat OpenShift (ARO) with managed identities.

pub(crate) mod capacity;
mod credentials;
pub(crate) mod identity;
pub(crate) mod infrastructure;
pub(crate) mod machines;
mod orphans;

use kube::api::ApiResource;

use crate::capi::Capi;
pub(crate) use credentials::kms;

/// The version of the provider's kinds.
const VERSION: &str = "v1beta1";
/// Where components find the token of their workload identity.
const TOKEN: &str = "/var/run/secrets/openshift/serviceaccount/token";
/// The variable with the client ID of the identity that reads certificates from key vaults.
pub(crate) const KEY_VAULT_CLIENT: &str = "ARO_HCP_KEY_VAULT_USER_CLIENT_ID";

/// `AzureCluster`.
fn cluster(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "AzureCluster", "azureclusters")
}

/// `AzureClusterIdentity`.
fn cluster_identity(capi: Capi) -> ApiResource {
    let plural = "azureclusteridentities";
    capi.infrastructure(VERSION, "AzureClusterIdentity", plural)
}

/// `AzureMachine`.
fn machine(capi: Capi) -> ApiResource {
    capi.infrastructure(VERSION, "AzureMachine", "azuremachines")
}

/// `AzureMachineTemplate`.
pub(crate) fn machine_template(capi: Capi) -> ApiResource {
    let plural = "azuremachinetemplates";
    capi.infrastructure(VERSION, "AzureMachineTemplate", plural)
}
