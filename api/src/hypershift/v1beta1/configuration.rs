//! The OpenShift configuration of a hosted cluster.
//! Each part becomes the `spec` of the object `cluster` of its kind in `config.openshift.io`, inside the hosted cluster.

pub mod api_server;
pub mod authentication;
pub mod feature_gate;
pub mod image;
pub mod ingress;
pub mod network;
pub mod oauth;
pub mod operator_hub;
pub mod proxy;
pub mod scheduler;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hypershift::v1beta1::configuration::api_server::ApiServerConfiguration;
use crate::hypershift::v1beta1::configuration::authentication::AuthenticationConfiguration;
use crate::hypershift::v1beta1::configuration::feature_gate::FeatureGateConfiguration;
use crate::hypershift::v1beta1::configuration::image::ImageConfiguration;
use crate::hypershift::v1beta1::configuration::ingress::IngressConfiguration;
use crate::hypershift::v1beta1::configuration::network::NetworkConfiguration;
use crate::hypershift::v1beta1::configuration::oauth::OAuthConfiguration;
use crate::hypershift::v1beta1::configuration::operator_hub::OperatorHubConfiguration;
use crate::hypershift::v1beta1::configuration::proxy::ProxyConfiguration;
use crate::hypershift::v1beta1::configuration::scheduler::SchedulerConfiguration;

/// OpenShift configuration of a hosted cluster.
/// It is made here and not in the hosted cluster, because most of it is for components that run in
/// the control plane.
/// Secrets and ConfigMaps that it names are in the HostedCluster's namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfiguration {
    /// The Kubernetes and OpenShift API servers: audit, certificates, TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_server: Option<ApiServerConfiguration>,
    /// Who may log in: the OAuth server of OpenShift, or an OIDC provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationConfiguration>,
    /// Features that are not on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_gate: Option<FeatureGateConfiguration>,
    /// From where images may be imported and pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageConfiguration>,
    /// Domain and certificates of routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<IngressConfiguration>,
    /// External addresses, node ports and network diagnostics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkConfiguration>,
    /// Identity providers and tokens of the OAuth server of OpenShift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthConfiguration>,
    /// The catalogs of operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operatorhub: Option<OperatorHubConfiguration>,
    /// How pods are placed on nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerConfiguration>,
    /// The proxy through which the cluster reaches the internet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyConfiguration>,
}
