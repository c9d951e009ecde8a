//! The control plane of a hosted cluster, as the operator of hosted clusters hands it to that of control planes.

pub mod status;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crds::Kind;
use crate::hypershift::v1beta1::auto_node::AutoNode;
use crate::hypershift::v1beta1::autoscaling::ClusterAutoscaling;
use crate::hypershift::v1beta1::capabilities::Capabilities;
use crate::hypershift::v1beta1::configuration::ClusterConfiguration;
use crate::hypershift::v1beta1::dns::DnsSpec;
use crate::hypershift::v1beta1::etcd::EtcdSpec;
use crate::hypershift::v1beta1::hosted_cluster::{AvailabilityPolicy, OlmCatalogPlacement};
use crate::hypershift::v1beta1::image_content_source::ImageContentSource;
use crate::hypershift::v1beta1::monitoring::MonitoringSpec;
use crate::hypershift::v1beta1::networking::ClusterNetworking;
use crate::hypershift::v1beta1::operator_configuration::OperatorConfiguration;
use crate::hypershift::v1beta1::platform::PlatformSpec;
use crate::hypershift::v1beta1::references::KubeconfigSecretReference;
use crate::hypershift::v1beta1::secret_encryption::SecretEncryptionSpec;
use crate::hypershift::v1beta1::services::ServicePublishingStrategyMapping;
use crate::schema::{self, immutable, rule, with};
use status::HostedControlPlaneStatus;

/// Desired state of the control plane. It is generated from the HostedCluster; do not edit it.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "HostedControlPlane",
    doc = "The control plane of a hosted cluster.",
    namespaced,
    status = "HostedControlPlaneStatus",
    derive = "PartialEq",
    shortname = "hcp",
    shortname = "hcps",
    category = "cluster-api",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.services.size() >= (self.platform.type == 'IBMCloud' ? 3 : 4)",
        "too few services are published; list APIServer, OAuthServer, Konnectivity and Ignition \
         (on IBMCloud at least three of them)"
    ),
    transform = rule(
        "self.networking.networkType == 'Other' || \
         !has(self.operatorConfiguration) || \
         !has(self.operatorConfiguration.clusterNetworkOperator) || \
         !has(self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork) || \
         self.operatorConfiguration.clusterNetworkOperator.disableMultiNetwork == false",
        "disableMultiNetwork is possible with networkType Other only; set it to false or change \
         the network type"
    ),
    transform = rule(
        "has(self.secretEncryption) || !has(oldSelf.secretEncryption)",
        "encryption of Secrets cannot be turned off; put back secretEncryption"
    ),
)]
pub struct HostedControlPlaneSpec {
    /// The image that holds the release to run.
    #[schemars(length(max = 255))]
    pub release_image: String,
    /// The image of the release for those components that only the management cluster sees, if it
    /// differs from `releaseImage`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub control_plane_release_image: Option<String>,
    /// UUID by which OpenShift and its telemetry know the cluster.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub cluster_id: Option<String>,
    /// Name that the cluster's resources on the infrastructure are tagged with and named by.
    #[serde(rename = "infraID")]
    #[schemars(length(max = 255))]
    pub infra_id: String,
    /// Channel from which updates are recommended, for example `stable-4.20`. Without one, none
    /// are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub channel: Option<String>,
    /// URL of the service that recommends updates, if it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_service: Option<String>,
    /// The infrastructure that the nodes run on. Clusters with nodes of an Agent service have
    /// `None` here.
    pub platform: PlatformSpec,
    /// The cluster's domain, and the zones that hold its records.
    pub dns: DnsSpec,
    /// Address ranges and network provider of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networking: Option<ClusterNetworking>,
    /// How the services of the control plane are published: `APIServer`, `OAuthServer`,
    /// `Konnectivity` and `Ignition`.
    /// Except on IBM Cloud it is decided when the cluster is created.
    #[schemars(length(max = 6))]
    pub services: Vec<ServicePublishingStrategyMapping>,
    /// Where the control plane keeps its data.
    pub etcd: EtcdSpec,
    /// Where to put the administrator's kubeconfig. Without it, names are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<KubeconfigSecretReference>,
    /// How many replicas the components of the control plane have. It is decided when the cluster
    /// is created.
    #[serde(default = "AvailabilityPolicy::highly_available")]
    #[schemars(
        transform = immutable(
            "the availability of the control plane is decided when the cluster is created; create \
             a new cluster to change it"
        ),
    )]
    pub controller_availability_policy: AvailabilityPolicy,
    /// How many replicas those components have that run on the nodes, such as routers. With more
    /// than one, there should be several nodes.
    #[serde(default = "AvailabilityPolicy::single_replica")]
    pub infrastructure_availability_policy: AvailabilityPolicy,
    /// OpenShift configuration of the cluster: authentication, certificates, proxy and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ClusterConfiguration>,
    /// Settings of operators that the cluster has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_configuration: Option<OperatorConfiguration>,
    /// How Secrets are encrypted in etcd. It cannot be removed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_encryption: Option<SecretEncryptionSpec>,
    /// Secret with credentials for registries, under the key `.dockerconfigjson`.
    #[schemars(with = "schema::LocalObjectReference")]
    pub pull_secret: LocalObjectReference,
    /// Secret with a public SSH key for the nodes, under the key `id_rsa.pub`. Its name may be
    /// empty.
    #[schemars(with = "schema::LocalObjectReference")]
    pub ssh_key: LocalObjectReference,
    /// Secret with the kubeconfig of a service that audit events are sent to, under the key
    /// `webhook-kubeconfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub audit_webhook: Option<LocalObjectReference>,
    /// ConfigMap with certificate authorities that are trusted in addition to the system's, under
    /// the key `ca-bundle.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub additional_trust_bundle: Option<LocalObjectReference>,
    /// Mirrors of images, for the nodes and for the release itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 255))]
    pub image_content_sources: Vec<ImageContentSource>,
    /// URL of the OIDC issuer of the cluster's service accounts.
    #[serde(rename = "issuerURL")]
    #[schemars(length(max = 255))]
    pub issuer_url: String,
    /// Secret with the private key that signs tokens of service accounts, under the key
    /// `service-account.key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub service_account_signing_key: Option<LocalObjectReference>,
    /// DNS name of your own under which the API server can be reached in addition. A kubeconfig for
    /// it is made, named in `status.customKubeconfig`; the record and the certificate, in
    /// `configuration.apiServer.servingCerts.namedCertificates`, are up to you.
    #[serde(
        rename = "kubeAPIServerDNSName",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(
        length(max = 253),
        transform = rule(
            "self == '' || self.matches('^(([a-zA-Z0-9-]+[.])+[a-zA-Z]{2,}|[a-zA-Z0-9-]+)$')",
            "kubeAPIServerDNSName must be a DNS name such as api.example.com, or empty"
        ),
    )]
    pub kube_api_server_dns_name: Option<String>,
    /// Whether the nodes and the control plane use cryptography that is validated for FIPS 140
    /// only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fips: Option<bool>,
    /// Where the catalogs of operators run.
    #[serde(default)]
    pub olm_catalog_placement: OlmCatalogPlacement,
    /// Optional parts of OpenShift that the cluster has. They are chosen when it is created.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// How the number of nodes follows the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<ClusterAutoscaling>,
    /// Nodes that are made as pods need them, without node pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_node: Option<AutoNode>,
    /// Metrics of the control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<MonitoringSpec>,
    /// Labels of the management cluster's nodes that pods of the control plane run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of the management cluster's nodes that pods of the control plane tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Toleration>", length(max = 25))]
    pub tolerations: Vec<Toleration>,
    /// Labels for the pods of the control plane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = with("maxProperties", 20))]
    pub labels: BTreeMap<String, String>,
    /// Stops the reconciliation: until a time such as `2030-01-31T12:00:00Z`, or, with `true`,
    /// until it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub paused_until: Option<String>,
}

impl Kind for HostedControlPlane {
    const DESCRIPTION: &'static str = "The control plane of a hosted cluster. It is made from a HostedCluster, which is the place for changes.";
    // Cluster API takes it for a cluster's control plane.
    const LABELS: &'static [(&'static str, &'static str)] =
        &[(crate::group::V1BETA1_CONTRACT, "v1beta1")];
}
