//! A hosted cluster on Google Cloud. It is part of the technology preview.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use crate::schema::{immutable, list_map, rule};

/// Settings for Google Cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.controlPlane\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account controlPlane must belong to the project of the cluster; correct \
         serviceAccountsEmails.controlPlane"
    ),
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.nodePool\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account nodePool must belong to the project of the cluster; correct \
         serviceAccountsEmails.nodePool"
    ),
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.cloudController\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account cloudController must belong to the project of the cluster; correct \
         serviceAccountsEmails.cloudController"
    ),
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.storage\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account storage must belong to the project of the cluster; correct \
         serviceAccountsEmails.storage"
    ),
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.imageRegistry\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account imageRegistry must belong to the project of the cluster; correct \
         serviceAccountsEmails.imageRegistry"
    ),
    transform = rule(
        "self.workloadIdentity.serviceAccountsEmails.network\
         .endsWith('@' + self.project + '.iam.gserviceaccount.com')",
        "the service account network must belong to the project of the cluster; correct \
         serviceAccountsEmails.network"
    ),
)]
pub struct GcpPlatformSpec {
    /// ID of the project that the cluster's resources are created in. It cannot be changed later.
    #[schemars(
        length(min = 6, max = 30),
        transform = rule(
            "self.matches('^[a-z][-0-9a-z]{4,28}[0-9a-z]$')",
            "project must be the ID of a project: 6 to 30 lower-case letters, digits and hyphens, \
             beginning with a letter"
        ),
        transform = immutable("project cannot change; create a new cluster in the other project"),
    )]
    pub project: String,
    /// Region of the cluster, for example `us-central1`. It cannot be changed later.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[a-z]+-[a-z]+[0-9]+$')",
            "region must be a region of Google Cloud, such as us-central1"
        ),
        transform = immutable("region cannot change; create a new cluster in the other region"),
    )]
    pub region: String,
    /// Network of the cluster's nodes.
    pub network_config: GcpNetworkConfig,
    /// From where the API server and the other services of the control plane are reached.
    #[serde(default)]
    pub endpoint_access: GcpEndpointAccess,
    /// Labels for the resources that the cluster creates on Google Cloud, in addition to those that
    /// OpenShift sets by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 60), transform = list_map(["key"]))]
    pub resource_labels: Vec<GcpResourceLabel>,
    /// How components of the cluster authenticate to Google Cloud. It cannot be changed later.
    #[schemars(
        transform = immutable(
            "workloadIdentity cannot change; create a new cluster with the other identities"
        ),
    )]
    pub workload_identity: GcpWorkloadIdentityConfig,
}

/// Network of a cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpNetworkConfig {
    /// The VPC network. It cannot be changed later.
    #[schemars(
        transform = immutable("network cannot change; create a new cluster in the other network"),
    )]
    pub network: GcpResourceReference,
    /// Subnet for the endpoint of Private Service Connect, through which nodes reach the control
    /// plane. It cannot be changed later.
    #[schemars(
        transform = immutable(
            "privateServiceConnectSubnet cannot change; create a new cluster with the other subnet"
        ),
    )]
    pub private_service_connect_subnet: GcpResourceReference,
}

/// A resource of the cluster's project, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcpResourceReference {
    /// Name of the resource.
    #[schemars(length(min = 1, max = 63), transform = resource_name)]
    pub name: String,
}

/// From where the services of a control plane are reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GcpEndpointAccess {
    /// From the internet, and privately from the network of the nodes.
    PublicAndPrivate,
    /// Privately from the network of the nodes only.
    #[default]
    Private,
}

/// A label of resources on Google Cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcpResourceLabel {
    /// The label's key. Keys that begin with `goog` are reserved.
    #[schemars(
        length(min = 1, max = 63),
        transform = rule(
            "self.matches('^[a-z]([-_0-9a-z]{0,61}[0-9a-z])?$')",
            "a label's key must be lower-case letters, digits, hyphens and underscores that begin \
             with a letter and end with a letter or digit"
        ),
        transform = rule(
            "!self.startsWith('goog')",
            "keys that begin with goog are reserved by Google Cloud; rename the label"
        ),
    )]
    pub key: String,
    /// The label's value. It may be empty.
    #[schemars(
        length(min = 0, max = 63),
        transform = rule(
            "self == '' || self.matches('^[a-z]([-_0-9a-z]{0,61}[0-9a-z])?$')",
            "a label's value must be empty, or lower-case letters, digits, hyphens and underscores \
             that begin with a letter and end with a letter or digit"
        ),
    )]
    pub value: String,
}

/// A workload identity pool that trusts the cluster's issuer of service account tokens, and the
/// service accounts that components act as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpWorkloadIdentityConfig {
    /// Number of the project that the pool belongs to.
    #[schemars(
        length(min = 1, max = 25),
        transform = rule(
            "!self.matches('[^0-9]')",
            "projectNumber must be the number of a project, in digits; its ID goes into project"
        ),
        transform = immutable("projectNumber cannot change; put back the value that it had"),
    )]
    pub project_number: String,
    /// ID of the workload identity pool.
    #[serde(rename = "poolID")]
    #[schemars(
        length(min = 4, max = 32),
        transform = identity_id,
        transform = immutable("poolID cannot change; put back the value that it had"),
    )]
    pub pool_id: String,
    /// ID of the provider within the pool.
    #[serde(rename = "providerID")]
    #[schemars(
        length(min = 4, max = 32),
        transform = identity_id,
        transform = immutable("providerID cannot change; put back the value that it had"),
    )]
    pub provider_id: String,
    /// The service accounts, one for each job.
    pub service_accounts_emails: GcpServiceAccountsEmails,
}

/// E-mail addresses of the service accounts that components act as, one for each job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GcpServiceAccountsEmails {
    /// Service account of Cluster API, which creates and deletes the machines.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub node_pool: String,
    /// Service account of the control plane operator, which connects the nodes' network to the
    /// control plane.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub control_plane: String,
    /// Service account of the cloud controller manager, which manages nodes and load balancers.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub cloud_controller: String,
    /// Service account of the CSI driver, which manages disks.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub storage: String,
    /// Service account of the image registry, which keeps images in a bucket.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub image_registry: String,
    /// Service account of the cloud network configuration controller, which assigns egress
    /// addresses to nodes.
    #[schemars(length(min = 37, max = 85), transform = immutable(EMAIL_IS_FIXED), transform = email)]
    pub network: String,
}

const EMAIL_IS_FIXED: &str =
    "a service account of the cluster cannot change; put back the address that it had";

/// A name of a network, a subnet and the like.
pub(crate) fn resource_name(schema: &mut Schema) {
    rule(
        "self.matches('^[a-z]([-0-9a-z]*[0-9a-z])?$')",
        "a name on Google Cloud must be lower-case letters, digits and hyphens that begin with a \
         letter and end with a letter or digit",
    )(schema);
}

/// The e-mail address of a service account.
pub(crate) fn email(schema: &mut Schema) {
    rule(
        "self.matches('^[a-z][-0-9a-z]{4,28}[0-9a-z]@[a-z][-0-9a-z]{4,28}[0-9a-z][.]iam[.]gserviceaccount[.]com$')",
        "a service account must be an address of the form \
         <name>@<project>.iam.gserviceaccount.com",
    )(schema);
}

/// An ID of a workload identity pool or provider.
fn identity_id(schema: &mut Schema) {
    rule(
        "self.matches('^[a-z][-0-9a-z]{2,30}[0-9a-z]$')",
        "the ID of a pool or provider must be 4 to 32 lower-case letters, digits and hyphens that \
         begin with a letter and end with a letter or digit",
    )(schema);
    rule(
        "!self.startsWith('gcp-')",
        "IDs of pools and providers that begin with gcp- are reserved by Google Cloud",
    )(schema);
}
