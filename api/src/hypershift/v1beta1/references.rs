//! References to Secrets and ConfigMaps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Secret or ConfigMap by name; the field that holds the reference says which, and which keys it
/// needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameReference {
    /// Name of the object, in the namespace of the HostedCluster.
    pub name: String,
}

/// A kubeconfig inside a Secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeconfigSecretReference {
    /// Name of the Secret.
    #[schemars(length(max = 255))]
    pub name: String,
    /// Key of the Secret under which the kubeconfig is stored.
    #[schemars(length(max = 255))]
    pub key: String,
}
