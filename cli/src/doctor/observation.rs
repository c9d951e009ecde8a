//! What is looked at, reduced to what the checks need.

use std::collections::BTreeMap;

use ownership::ObservedGroups;

pub use crate::install::tenant_policy::Mode;

/// Something that may be kept from the one who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// It was read.
    Read(T),
    /// The cluster does not know such objects: their CRD is not installed.
    Unknown,
    /// It was refused; the text is the API server's.
    Refused(String),
}

/// Everything that the checks look at.
#[derive(Debug, Clone)]
pub struct Observation {
    /// As the API server says it, such as `v1.35.4`.
    pub server_version: String,
    /// The namespace of the operators.
    pub namespace: String,
    /// CRDs of the standard and private groups of the table, and of our own API.
    pub crds: Vec<CrdFacts>,
    /// All hosted clusters.
    pub clusters: Found<Vec<ClusterFacts>>,
    /// The Deployments in [`Self::namespace`].
    pub deployments: Found<Vec<DeploymentFacts>>,
    /// What the operator's service account may do.
    pub permissions: Found<Vec<PermissionFacts>>,
    /// Webhooks that requests for our objects go through.
    pub webhooks: Found<Vec<WebhookFacts>>,
    /// Certificates that webhooks of ours serve with.
    pub certificates: Found<Vec<CertificateFacts>>,
    /// What the tenant policy does.
    pub tenant_policy: Found<Mode>,
}

/// A certificate in a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// `namespace/name` of the Secret.
    pub secret: String,
    /// How long it is still good; none if it cannot be read.
    pub seconds_left: Option<i64>,
}

/// A Custom Resource Definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrdFacts {
    /// `machines.cluster.x-k8s.io`.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Versions that are served.
    pub served: Vec<String>,
    /// The version that objects are stored at.
    pub storage: String,
    /// Versions that objects may be stored at.
    pub stored: Vec<String>,
    /// Labels and annotations together.
    pub marks: BTreeMap<String, String>,
    /// Who has written it.
    pub managers: Vec<String>,
    /// Its condition `Established`.
    pub established: bool,
}

/// A hosted cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// `namespace/name`.
    pub name: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Why its control plane namespace is not its own, if it is another one's.
    pub refusal: Option<String>,
    /// Which groups hold its Cluster API objects; the text says why that is not known.
    pub observed: Result<ObservedGroups, String>,
}

/// A Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeploymentFacts {
    /// Its name.
    pub name: String,
    /// Replicas that are asked for.
    pub wanted: i32,
    /// Replicas that are available.
    pub available: i32,
    /// The images of its containers.
    pub images: Vec<String>,
}

/// One thing that the operator must be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionFacts {
    /// `patch`.
    pub verb: String,
    /// `hostedclusters.hypershift.openshift.io`.
    pub resource: String,
    /// Whether it is.
    pub allowed: bool,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFacts {
    /// Who calls it.
    pub user: WebhookUser,
    /// `namespace/name` of its Service.
    pub service: String,
    /// Ready addresses behind the Service; none if there is no such Service.
    pub ready: Option<usize>,
    /// It has a certificate authority to be trusted.
    pub has_authority: bool,
}

/// What a webhook serves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookUser {
    /// Conversion of the CRD of this name.
    Conversion(String),
    /// Admission, by the configuration of this name.
    Admission(String),
}
