//! A cluster with a control plane that runs as pods on a management cluster.

mod policy;
pub mod status;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LocalObjectReference, Toleration};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::crds::Kind;
use crate::hypershift::v1beta1::auto_node::AutoNode;
use crate::hypershift::v1beta1::autoscaling::ClusterAutoscaling;
use crate::hypershift::v1beta1::capabilities::Capabilities;
use crate::hypershift::v1beta1::common::Release;
use crate::hypershift::v1beta1::configuration::ClusterConfiguration;
use crate::hypershift::v1beta1::dns::DnsSpec;
use crate::hypershift::v1beta1::etcd::EtcdSpec;
use crate::hypershift::v1beta1::image_content_source::ImageContentSource;
use crate::hypershift::v1beta1::monitoring::MonitoringSpec;
use crate::hypershift::v1beta1::networking::ClusterNetworking;
use crate::hypershift::v1beta1::operator_configuration::OperatorConfiguration;
use crate::hypershift::v1beta1::platform::PlatformSpec;
use crate::hypershift::v1beta1::secret_encryption::SecretEncryptionSpec;
use crate::hypershift::v1beta1::services::ServicePublishingStrategyMapping;
use crate::schema::{self, immutable, rule, with};
use status::HostedClusterStatus;

pub use policy::{AvailabilityPolicy, OlmCatalogPlacement};

/// What the cluster should be.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::duplicated_attributes, reason = "every column has a type")]
#[kube(
    group = "hypershift.openshift.io",
    version = "v1beta1",
    kind = "HostedCluster",
    doc = "A cluster with a control plane that runs as pods on a management cluster.",
    namespaced,
    status = "HostedClusterStatus",
    derive = "PartialEq",
    shortname = "hc",
    shortname = "hcs",
    schema = "disabled",
    crates(kube_core = "::kube_core", kube = "::kube_core"),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = r#".status.version.history[?(@.state=="Completed")].version"#,
        description = "Release that the nodes' side of the cluster last completed"
    ),
    printcolumn(
        name = "CP Version",
        type_ = "string",
        json_path = r#".status.controlPlaneVersion.history[?(@.state=="Completed")].version"#,
        description = "Release that the control plane last completed"
    ),
    printcolumn(
        name = "KubeConfig",
        type_ = "string",
        json_path = ".status.kubeconfig.name",
        description = "Secret with the administrator's kubeconfig"
    ),
    printcolumn(
        name = "Progress",
        type_ = "string",
        json_path = r#".status.version.history[?(@.state!="")].state"#,
        description = "How far the newest release is rolled out"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the control plane can be used"
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Progressing")].status"#,
        description = "Whether a change is being carried out"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].message"#,
        description = "What keeps the control plane from being available"
    ),
    printcolumn(
        name = "CP Progress",
        type_ = "string",
        json_path = ".status.controlPlaneVersion.history[0].state",
        description = "How far the newest release is rolled out to the control plane",
        priority = 1
    ),
    printcolumn(
        name = "DP Progress",
        type_ = "string",
        json_path = ".status.version.history[0].state",
        description = "How far the newest release is rolled out to the nodes' side of the cluster",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.services.size() >= (self.platform.type == 'IBMCloud' ? 3 : 4)",
        "too few services are published; list APIServer, OAuthServer, Konnectivity and Ignition \
         (on IBMCloud at least three of them)"
    ),
    transform = rule(
        "self.platform.type == 'IBMCloud' || oldSelf.services == self.services",
        "how services are published is decided when the cluster is created; put services back as \
         they were"
    ),
    transform = rule(
        "self.platform.type != 'Azure' || (has(self.platform.azure) && \
         self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType == \
         'WorkloadIdentities') || self.services.exists(it, it.service == 'OAuthServer' && \
         it.servicePublishingStrategy.type == 'Route')",
        "on Azure with managed identities the OAuthServer must be published by a Route; correct \
         its entry in services"
    ),
    transform = rule(
        "self.platform.type != 'Azure' || !has(self.platform.azure) || \
         self.platform.azure.azureAuthenticationConfig.azureAuthenticationConfigType != \
         'WorkloadIdentities' || self.services.exists(it, it.service == 'OAuthServer' && \
         it.servicePublishingStrategy.type in ['LoadBalancer', 'Route'])",
        "on Azure the OAuthServer must be published by a Route or a LoadBalancer; correct its \
         entry in services"
    ),
    transform = rule(
        "self.platform.type != 'Azure' || self.services.exists(it, it.service == 'Konnectivity' && \
         it.servicePublishingStrategy.type == 'Route')",
        "on Azure the Konnectivity service must be published by a Route; correct its entry in \
         services"
    ),
    transform = rule(
        "self.platform.type != 'Azure' || self.services.exists(it, it.service == 'Ignition' && \
         it.servicePublishingStrategy.type == 'Route')",
        "on Azure the Ignition service must be published by a Route; correct its entry in services"
    ),
    transform = rule(
        "!has(self.serviceAccountSigningKey) || has(self.issuerURL)",
        "a signing key of your own needs the URL of its issuer; set issuerURL"
    ),
    transform = rule(
        "!has(self.configuration) || !has(self.configuration.apiServer) || \
         !has(self.configuration.apiServer.servingCerts) || \
         !has(self.configuration.apiServer.servingCerts.namedCertificates) || \
         self.services.all(it, it.service != 'APIServer' || \
         !has(it.servicePublishingStrategy.loadBalancer) || \
         !has(it.servicePublishingStrategy.loadBalancer.hostname) || \
         it.servicePublishingStrategy.loadBalancer.hostname == '' || \
         self.configuration.apiServer.servingCerts.namedCertificates.all(cert, !has(cert.names) || \
         !(it.servicePublishingStrategy.loadBalancer.hostname in cert.names)))",
        "the host name that nodes use for the APIServer must keep the certificate that the control \
         plane makes; remove it from configuration.apiServer.servingCerts.namedCertificates, and \
         use kubeAPIServerDNSName for a name of your own"
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
        "!has(self.operatorConfiguration) || \
         !has(self.operatorConfiguration.clusterNetworkOperator) || \
         !has(self.operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig) || \
         self.networking.networkType == 'OVNKubernetes'",
        "ovnKubernetesConfig is for networkType OVNKubernetes only; remove it or change the \
         network type"
    ),
    transform = rule(
        "has(self.secretEncryption) || !has(oldSelf.secretEncryption)",
        "encryption of Secrets cannot be turned off; put back secretEncryption"
    ),
)]
pub struct HostedClusterSpec {
    /// Release of OpenShift that the cluster runs: the control plane at once, and what runs on the
    /// nodes after it.
    /// Node pools have a release of their own. To upgrade, name a newer one here.
    pub release: Release,
    /// Release for those components of the control plane that only the management cluster sees, if
    /// it is to differ from `release`: for a fix that must not wait for the cluster's next upgrade.
    /// It should be a newer patch release of the same minor version; nothing verifies that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_release: Option<Release>,
    /// UUID by which OpenShift and its telemetry know the cluster.
    /// It is generated when nothing is given, and then stays.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(equal = 36),
        transform = rule(
            "self.matches('[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}')",
            "clusterID must be a UUID such as 00000000-0000-0000-0000-000000000000, or be left out \
             to have one generated"
        ),
        transform = rule(
            "oldSelf in ['', self]",
            "the cluster's ID cannot be changed once it is set; put back the value that it had"
        ),
    )]
    pub cluster_id: Option<String>,
    /// Name that the cluster's resources on the infrastructure are tagged with and named by.
    /// It is made from the cluster's name when nothing is given, and then stays.
    #[serde(rename = "infraID", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            "infraID must have lower-case letters, digits and hyphens only, and begin and end with \
             a letter or digit"
        ),
        transform = rule(
            "oldSelf in ['', self]",
            "the infrastructure ID cannot be changed once it is set; put back the value that it \
             had"
        ),
    )]
    pub infra_id: Option<String>,
    /// Channel from which updates are recommended, for example `stable-4.20`. Without one, none
    /// are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub channel: Option<String>,
    /// URL of the service that recommends updates, if it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = rule(
            "isURL(self)",
            "updateService must be a URL such as https://updates.example.com/graph"
        ),
    )]
    pub update_service: Option<String>,
    /// The infrastructure that the nodes run on.
    pub platform: PlatformSpec,
    /// The cluster's domain, and the zones that hold its records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns: Option<DnsSpec>,
    /// Address ranges and network provider of the cluster.
    #[schemars(transform = with("default", default_value::<ClusterNetworking>()))]
    pub networking: ClusterNetworking,
    /// How the services of the control plane are published: `APIServer`, `OAuthServer`,
    /// `Konnectivity` and `Ignition`.
    /// Except on IBM Cloud it is decided when the cluster is created.
    #[schemars(length(max = 6))]
    pub services: Vec<ServicePublishingStrategyMapping>,
    /// Where the control plane keeps its data.
    #[schemars(transform = with("default", default_value::<EtcdSpec>()))]
    pub etcd: EtcdSpec,
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
    /// How Secrets are encrypted in etcd. Without it, AES-CBC with a key that is generated. It
    /// cannot be removed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_encryption: Option<SecretEncryptionSpec>,
    /// Secret in the HostedCluster's namespace with credentials for registries, under the key
    /// `.dockerconfigjson`. The control plane and the nodes pull the release with them.
    #[schemars(with = "schema::LocalObjectReference")]
    pub pull_secret: LocalObjectReference,
    /// Secret in the HostedCluster's namespace with a public SSH key, under the key `id_rsa.pub`,
    /// with which users can log in to the nodes as `core`. Without it, login is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub ssh_key: Option<LocalObjectReference>,
    /// Secret in the HostedCluster's namespace with the kubeconfig of a service that audit events
    /// are sent to, under the key `webhook-kubeconfig`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub audit_webhook: Option<LocalObjectReference>,
    /// ConfigMap in the HostedCluster's namespace with certificate authorities, under the key
    /// `ca-bundle.crt`, which the control plane and the nodes trust in addition to the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub additional_trust_bundle: Option<LocalObjectReference>,
    /// Mirrors of images, for the nodes and for the release itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 255))]
    pub image_content_sources: Vec<ImageContentSource>,
    /// URL of the OIDC issuer of the cluster's service accounts. It is decided when the cluster is
    /// created.
    /// The usual one is the API server's name inside the cluster; clouds that verify tokens need
    /// one that they can reach, which serves the issuer's documents.
    #[serde(rename = "issuerURL", default = "default_issuer_url")]
    #[schemars(
        length(max = 255),
        transform = immutable(
            "the issuer is decided when the cluster is created; create a new cluster to use \
             another one"
        ),
        transform = rule(
            "isURL(self)",
            "issuerURL must be a URL such as https://oidc.example.com/cluster"
        ),
    )]
    pub issuer_url: String,
    /// Secret in the HostedCluster's namespace with the private key that signs tokens of service
    /// accounts, under the key `key`. Without it, a key is generated.
    /// It belongs to the issuer of `issuerURL`.
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
    /// only. It is decided when the cluster is created. Without a value they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        transform = immutable(
            "FIPS mode is decided when the cluster is created; create a new cluster to change it"
        ),
    )]
    pub fips: Option<bool>,
    /// Where the catalogs of operators run. It is decided when the cluster is created.
    #[serde(default)]
    #[schemars(
        transform = immutable(
            "the place of the catalogs is decided when the cluster is created; create a new \
             cluster to change it"
        ),
    )]
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
    #[schemars(transform = rule("self.size() < 21", "there can be 20 labels; remove some"))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of the management cluster's nodes that pods of the control plane tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Toleration>", length(max = 25))]
    pub tolerations: Vec<Toleration>,
    /// Labels for the pods of the control plane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = with("maxProperties", 20))]
    pub labels: BTreeMap<String, String>,
    /// Stops the cluster's reconciliation: until a time such as `2030-01-31T12:00:00Z`, or, with
    /// `true`, until it is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 4, max = 35),
        transform = rule(
            "self in ['true', 'True', 'false', 'False'] || \
             self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}')",
            "pausedUntil must be a time such as 2030-01-31T12:00:00Z, or true or false"
        ),
    )]
    pub paused_until: Option<String>,
}

impl Kind for HostedCluster {
    const DESCRIPTION: &'static str = "A cluster with a control plane that runs as pods on a management cluster. NodePools provide its nodes.";
    const RULES: &'static [(&'static str, &'static str)] = &[
        (
            "!(has(oldSelf.spec) && has(oldSelf.spec.infraID)) || (has(self.spec) && has(self.spec.infraID))",
            "spec.infraID cannot be removed; put back the value that it had",
        ),
        (
            "!(has(oldSelf.spec) && has(oldSelf.spec.clusterID)) || (has(self.spec) && has(self.spec.clusterID))",
            "spec.clusterID cannot be removed; put back the value that it had",
        ),
    ];
}

/// The default of a field that must be present, for the schema.
fn default_value<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).unwrap_or_default()
}

fn default_issuer_url() -> String {
    "https://kubernetes.default.svc".into()
}
