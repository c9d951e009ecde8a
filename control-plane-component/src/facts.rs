//! Derived properties of a hosted control plane.

use std::collections::BTreeMap;

use api::annotations::cluster::{
    DISABLE_MONITORING_SERVICES, SWIFT_POD_NETWORK_INSTANCE, TOPOLOGY,
};
use api::hypershift::v1beta1::capabilities::OptionalCapability;
use api::hypershift::v1beta1::configuration::authentication::AuthenticationType;
use api::hypershift::v1beta1::configuration::feature_gate::FeatureSet;
use api::hypershift::v1beta1::etcd::EtcdManagementType;
use api::hypershift::v1beta1::hosted_cluster::AvailabilityPolicy;
use api::hypershift::v1beta1::networking::ClusterNetworking;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::platform::azure::AzureTopology;
use api::hypershift::v1beta1::platform::azure::private::{AzurePrivateSpec, AzurePrivateType};
use api::hypershift::v1beta1::platform::gcp::GcpEndpointAccess;
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};

use super::context::Context;
use super::tls::Tls;
use crate::settings::ARO;

/// Value of the topology annotation for dedicated request-serving nodes.
const DEDICATED: &str = "dedicated-request-serving-components";

/// Addresses of the published services. Hosts are empty and ports 0 until they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Infra {
    /// External endpoint of the API server.
    pub api: Endpoint,
    /// Endpoint of the OAuth server.
    pub oauth: Endpoint,
    /// Endpoint of the konnectivity server, for the agents on nodes.
    pub konnectivity: Endpoint,
    /// Endpoint of the ignition server.
    pub ignition: Endpoint,
    /// Whether the control plane needs its own router.
    pub needs_router: bool,
    /// The external host of the router, once it is known.
    pub router_host: Option<String>,
    /// The internal host of the router, once it is known.
    pub private_router_host: Option<String>,
    /// Endpoints of the identity providers that use `OpenID` Connect, by name, once they are known.
    pub openid: BTreeMap<String, OpenIdEndpoints>,
    /// Why endpoints of such providers are unknown, or could not be refreshed, by name.
    pub openid_failures: BTreeMap<String, String>,
}

/// Endpoints of an identity provider, from its discovery document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenIdEndpoints {
    /// URL of the login page.
    pub authorize: String,
    /// URL that issues tokens.
    pub token: String,
    /// URL with claims about a user; may be empty.
    pub user_info: String,
    /// Whether it issues tokens for passwords.
    pub challenge: bool,
}

/// A host and a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// DNS name or IP address; empty until it is known.
    pub host: String,
    /// The port; 0 until it is known.
    pub port: i32,
}

/// Network access to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Public.
    Public,
    /// Public, and through a private endpoint in the cluster's network.
    PublicAndPrivate,
    /// Only from the cluster's network.
    Private,
}

// === impl Endpoint ===

impl Endpoint {
    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }

    /// Returns its URL; IPv6 addresses are put in brackets.
    pub fn url(&self) -> String {
        url(&self.host, self.port)
    }
}

/// Returns the URL of a host and a port; IPv6 addresses are put in brackets.
pub fn url(host: &str, port: i32) -> String {
    if host.contains(':') {
        return format!("https://[{host}]:{port}");
    }
    format!("https://{host}:{port}")
}

// === impl Access ===

impl Access {
    /// Whether it is reachable publicly.
    pub fn is_public(self) -> bool {
        self != Self::Private
    }

    /// Whether it has a private endpoint in the cluster's network.
    pub fn is_private(self) -> bool {
        self != Self::Public
    }
}

// === impl Context ===

impl<'a> Context<'a> {
    /// The platform.
    pub fn platform(&self) -> PlatformType {
        self.spec().platform.type_
    }

    /// Whether this is the platform.
    pub fn is_on(&self, platform: PlatformType) -> bool {
        self.platform() == platform
    }

    /// Network access to the API server.
    pub fn access(&self) -> Access {
        let platform = &self.spec().platform;
        let aws = platform.aws.as_ref().map(|aws| aws.endpoint_access);
        let azure = platform.azure.as_ref().and_then(|azure| azure.topology);
        if let (PlatformType::Gcp, Some(gcp)) = (platform.type_, &platform.gcp) {
            return match gcp.endpoint_access {
                GcpEndpointAccess::Private => Access::Private,
                GcpEndpointAccess::PublicAndPrivate => Access::PublicAndPrivate,
            };
        }
        match (platform.type_, aws, azure) {
            (PlatformType::Aws, Some(AwsEndpointAccess::Private), _)
            | (PlatformType::Azure, _, Some(AzureTopology::Private)) => Access::Private,
            (PlatformType::Aws, Some(AwsEndpointAccess::PublicAndPrivate), _)
            | (PlatformType::Azure, _, Some(AzureTopology::PublicAndPrivate)) => {
                Access::PublicAndPrivate
            }
            // Nodes use the pods that are attached to their network; without a topology, clients use the public address.
            (PlatformType::Azure, _, None) if self.is_swift() => Access::PublicAndPrivate,
            _ => Access::Public,
        }
    }

    /// Whether pods of the control plane are attached to the nodes' network. Of the annotation, only ARO takes notice.
    pub fn is_swift(&self) -> bool {
        let private = self.azure_private();
        let is_annotated = self.settings.managed_service.as_deref() == Some(ARO)
            && self.swift_instance().is_some();
        self.is_on(PlatformType::Azure)
            && (is_annotated || private.is_some_and(|it| it.type_ == AzurePrivateType::Swift))
    }

    /// The Swift network instance of pods that are attached to the nodes' network.
    pub fn swift_instance(&self) -> Option<&'a str> {
        let swift = self.azure_private().and_then(|it| it.swift.as_ref());
        let annotated = self.annotation(SWIFT_POD_NETWORK_INSTANCE.key());
        swift
            .map(|swift| swift.pod_network_instance.as_str())
            .or_else(|| annotated.filter(|instance| !instance.is_empty()))
    }

    fn azure_private(&self) -> Option<&'a AzurePrivateSpec> {
        self.spec().platform.azure.as_ref()?.private.as_ref()
    }

    /// The publishing strategy of a service, if it has one.
    pub fn strategy(&self, service: ServiceType) -> Option<&'a ServicePublishingStrategy> {
        let mut services = self.spec().services.iter();
        services
            .find(|mapping| mapping.service == service)
            .map(|mapping| &mapping.service_publishing_strategy)
    }

    /// The port of Service kube-apiserver.
    pub fn api_port(&self) -> i32 {
        if self.is_on(PlatformType::IbmCloud) {
            return 2040;
        }
        6443
    }

    /// The port that pods of the API server listen on.
    pub fn api_pod_port(&self) -> i32 {
        self.api_networking()
            .and_then(|api| api.port)
            .unwrap_or(6443)
    }

    /// The DNS name of the API server in the cluster's network.
    pub fn api_internal_host(&self) -> String {
        format!("api.{}.hypershift.local", self.name())
    }

    /// The URL of the API server within the control plane.
    pub fn api_service_url(&self) -> String {
        url("kube-apiserver", self.api_port())
    }

    /// The address at which a proxy on each node serves the API server.
    pub fn api_advertise_address(&self) -> &'a str {
        let configured = self
            .api_networking()
            .and_then(|api| api.advertise_address.as_deref());
        let ipv4 = self
            .first_cluster_network()
            .is_none_or(|cidr| !cidr.contains(':'));
        configured.unwrap_or(if ipv4 { "172.20.0.1" } else { "fd00::1" })
    }

    fn api_networking(
        &self,
    ) -> Option<&'a api::hypershift::v1beta1::networking::ApiServerNetworking> {
        self.networking()
            .and_then(|networking| networking.api_server.as_ref())
    }

    /// The cluster's networking configuration.
    pub fn networking(&self) -> Option<&'a ClusterNetworking> {
        self.spec().networking.as_ref()
    }

    /// The CIDRs of pods.
    pub fn cluster_cidrs(&self) -> Vec<&'a str> {
        let networks = self
            .networking()
            .map(|networking| &networking.cluster_network);
        networks
            .into_iter()
            .flatten()
            .map(|network| network.cidr.0.as_str())
            .collect()
    }

    /// The CIDRs of services.
    pub fn service_cidrs(&self) -> Vec<&'a str> {
        let networks = self
            .networking()
            .map(|networking| &networking.service_network);
        networks
            .into_iter()
            .flatten()
            .map(|network| network.cidr.0.as_str())
            .collect()
    }

    fn first_cluster_network(&self) -> Option<&'a str> {
        self.cluster_cidrs().first().copied()
    }

    /// Whether the availability policy is `SingleReplica`.
    pub fn is_single_replica(&self) -> bool {
        self.spec().controller_availability_policy == AvailabilityPolicy::SingleReplica
    }

    /// Whether request-serving components run on dedicated nodes.
    pub fn is_dedicated(&self) -> bool {
        matches!(TOPOLOGY.get(self.annotations()), Ok(Some(topology)) if topology == DEDICATED)
    }

    /// Whether the guest has an optional part of OpenShift.
    pub fn has_capability(&self, capability: OptionalCapability) -> bool {
        !self.spec().capabilities.disabled.contains(&capability)
    }

    /// Whether components that are not needed for monitoring the cluster itself have Services and monitors for metrics.
    pub fn is_monitored(&self) -> bool {
        !DISABLE_MONITORING_SERVICES.is_set(self.annotations())
    }

    /// The domain of the guest's Routes, unless users configure another one.
    pub fn apps_domain(&self) -> String {
        let dns = &self.spec().dns;
        let domain = &dns.base_domain;
        match dns.base_domain_prefix.as_deref() {
            Some("") => format!("apps.{domain}"),
            Some(prefix) => format!("apps.{prefix}.{domain}"),
            None => format!("apps.{}.{domain}", self.name()),
        }
    }

    /// Whether etcd is managed by this operator.
    pub fn is_etcd_managed(&self) -> bool {
        self.spec().etcd.management_type == EtcdManagementType::Managed
    }

    /// The TLS profile.
    pub fn tls(&self) -> Tls {
        Tls::of(self.spec())
    }

    /// Whether users log in through the cluster's OAuth server.
    pub fn is_oauth_enabled(&self) -> bool {
        let configuration = self.spec().configuration.as_ref();
        let type_ = configuration
            .and_then(|configuration| configuration.authentication.as_ref())
            .and_then(|authentication| authentication.type_);
        type_ != Some(AuthenticationType::Oidc)
    }

    /// The configured feature set; `None` is the default set.
    pub fn feature_set(&self) -> Option<FeatureSet> {
        let configuration = self.spec().configuration.as_ref();
        configuration
            .and_then(|configuration| configuration.feature_gate.as_ref())
            .and_then(|gate| gate.feature_set)
            .filter(|set| *set != FeatureSet::Default)
    }
}
