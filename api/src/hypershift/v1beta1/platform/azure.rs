//! A hosted cluster on Azure.

pub mod identity;
pub mod private;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::platform::azure::identity::AzureAuthenticationConfiguration;
use crate::hypershift::v1beta1::platform::azure::private::AzurePrivateSpec;
use crate::schema::{immutable, rule};

/// Settings for Azure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "has(oldSelf.private) ? has(self.private) : !has(self.private)",
        "private cannot be added or removed after the cluster is created; create a new cluster to \
         change how it is connected"
    ),
    transform = rule(
        "has(self.topology) || !has(oldSelf.topology)",
        "topology cannot be removed; put back the value that it had"
    ),
    transform = rule(
        "!(has(oldSelf.topology) && has(self.topology)) || \
         (oldSelf.topology != 'Public') == (self.topology != 'Public')",
        "a Public cluster cannot become private, nor a private one Public; only Private and \
         PublicAndPrivate may be exchanged"
    ),
    transform = rule(
        "(has(self.topology) && self.topology in ['PublicAndPrivate', 'Private']) == \
         has(self.private)",
        "private is required with topology Private or PublicAndPrivate, and not allowed otherwise; \
         add it, remove it or correct topology"
    ),
    transform = rule(
        "has(self.private) && self.private.type == 'PrivateLink' && \
         self.azureAuthenticationConfig.azureAuthenticationConfigType == 'WorkloadIdentities' ? \
         has(self.azureAuthenticationConfig.workloadIdentities.controlPlaneOperator) : true",
        "a private link needs azureAuthenticationConfig.workloadIdentities.controlPlaneOperator, \
         the identity that creates it; add it"
    ),
)]
pub struct AzurePlatformSpec {
    /// The Azure cloud; the public one unless said otherwise.
    #[serde(default)]
    pub cloud: AzureCloud,
    /// Azure region of the cluster, for example `eastus`. Its resources are created there.
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the Azure region is fixed when the cluster is created; create a new cluster in the \
             other region"
        ),
    )]
    pub location: String,
    /// Name of an existing resource group in which the cluster's resources are created.
    /// It may be the one of the network or another.
    #[schemars(
        extend("default" = "default"),
        length(max = 90),
        regex(pattern = r"^[a-zA-Z0-9_()\-\.]{1,89}[a-zA-Z0-9_()\-]$"),
        transform = immutable(
            "the resource group is fixed when the cluster is created; create a new cluster to use \
             another one"
        ),
    )]
    pub resource_group: String,
    /// Resource ID of an existing virtual network for the nodes.
    #[serde(rename = "vnetID")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the virtual network is fixed when the cluster is created; create a new cluster to use \
             another one"
        ),
    )]
    pub vnet_id: String,
    /// Resource ID of the subnet for the nodes, in the virtual network of `vnetID`, of the form
    /// `/subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>`.
    #[serde(rename = "subnetID")]
    #[schemars(
        length(min = 1, max = 355),
        transform = rule(
            "self.split('/').size() == 11 && \
             self.matches('^/subscriptions/[^/]*/resourceGroups/[^/]*/providers/Microsoft.Network/virtualNetworks/[^/]*/subnets/[^/]*$')",
            "subnetID must be of the form \
             /subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.Network/virtualNetworks/<name>/subnets/<name>"
        ),
        transform = rule(
            "self.split('/')[4].matches('[-_().a-zA-Z0-9]{1,90}')",
            "the resource group in the subnet's ID must have 1 to 90 letters, digits, hyphens, \
             underscores, parentheses or periods"
        ),
        transform = rule(
            "!self.split('/')[4].matches('[.]$')",
            "the resource group in the subnet's ID must not end with a period"
        ),
        transform = rule(
            "self.split('/')[8].matches('[-_.a-zA-Z0-9]{2,64}')",
            "the virtual network in the subnet's ID must have 2 to 64 letters, digits, hyphens, \
             underscores or periods"
        ),
        transform = rule(
            "!self.split('/')[8].matches('[-.]$')",
            "the virtual network in the subnet's ID must not end with a period or a hyphen"
        ),
        transform = rule(
            "self.split('/')[10].matches('[a-zA-Z0-9][-_.a-zA-Z0-9]{0,79}')",
            "the subnet's name must have 1 to 80 letters, digits, hyphens, underscores or periods, \
             and begin with a letter or digit"
        ),
        transform = rule(
            "!self.split('/')[10].matches('[-.]$')",
            "the subnet's name must not end with a period or a hyphen"
        ),
        transform = immutable(
            "the subnet is fixed when the cluster is created; create a new cluster to use another \
             one"
        ),
    )]
    pub subnet_id: String,
    /// ID of the Azure subscription that the cluster's resources belong to.
    #[serde(rename = "subscriptionID")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the subscription is fixed when the cluster is created; create a new cluster to use \
             another one"
        ),
    )]
    pub subscription_id: String,
    /// Resource ID of an existing network security group of the nodes' subnet.
    #[serde(rename = "securityGroupID")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the security group is fixed when the cluster is created; create a new cluster to use \
             another one"
        ),
    )]
    pub security_group_id: String,
    /// ID of the Entra tenant in which the cluster's identities live.
    #[serde(rename = "tenantID")]
    #[schemars(length(max = 255))]
    pub tenant_id: String,
    /// How components of the cluster authenticate to Azure.
    pub azure_authentication_config: AzureAuthenticationConfiguration,
    /// From where the control plane is reached. Without a value it is reached from the internet.
    /// `Private` and `PublicAndPrivate` may be exchanged while the cluster runs; `Public` cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<AzureTopology>,
    /// How the private connection is created, when `topology` requires one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<AzurePrivateSpec>,
    /// Access of the nodes to a private container registry on Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_registry: Option<AzureContainerRegistrySpec>,
}

/// Access of the nodes to a private container registry on Azure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureContainerRegistrySpec {
    /// How the nodes authenticate to the registry.
    pub credentials: AzureContainerRegistryCredentials,
}

/// How nodes authenticate to a container registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.type == 'ManagedIdentity') == has(self.managedIdentity)",
        "managedIdentity is required with type ManagedIdentity; add it"
    ),
)]
pub struct AzureContainerRegistryCredentials {
    /// The way to authenticate: `ManagedIdentity` is the only one.
    #[serde(rename = "type")]
    pub type_: AzureContainerRegistryCredentialsType,
    /// The identity, when `type` is `ManagedIdentity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_identity: Option<AzureContainerRegistryManagedIdentity>,
}

/// An identity that may pull from a container registry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AzureContainerRegistryManagedIdentity {
    /// Resource ID of a user-assigned managed identity with the role `AcrPull`, of the form
    /// `/subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.ManagedIdentity/userAssignedIdentities/<name>`.
    /// It is attached to the nodes.
    #[serde(rename = "resourceID")]
    #[schemars(
        length(min = 131, max = 345),
        transform = rule(
            "self.matches('(?i)^/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft[.]managedidentity/userassignedidentities/[^/]+$')",
            "resourceID must be of the form \
             /subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.ManagedIdentity/userAssignedIdentities/<name>"
        ),
    )]
    pub resource_id: String,
}

/// How nodes authenticate to a container registry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureContainerRegistryCredentialsType {
    /// With a managed identity that is attached to them.
    #[default]
    ManagedIdentity,
}

/// An Azure cloud.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureCloud {
    /// The public cloud.
    #[default]
    #[serde(rename = "AzurePublicCloud")]
    PublicCloud,
    /// The cloud for government agencies of the United States.
    #[serde(rename = "AzureUSGovernmentCloud")]
    UsGovernmentCloud,
    /// The cloud in China.
    #[serde(rename = "AzureChinaCloud")]
    ChinaCloud,
    /// The former cloud in Germany.
    #[serde(rename = "AzureGermanCloud")]
    GermanCloud,
    /// The cloud of Bleu, in France.
    #[serde(rename = "AzureBleuCloud")]
    BleuCloud,
    /// An Azure Stack of one's own.
    #[serde(rename = "AzureStackCloud")]
    StackCloud,
}

/// From where a control plane on Azure is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum AzureTopology {
    /// From the internet.
    Public,
    /// From the internet and, for nodes, through a private connection.
    PublicAndPrivate,
    /// Only through a private connection.
    Private,
}
