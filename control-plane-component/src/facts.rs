//! Questions about a hosted control plane that many components ask.

use api::annotations::cluster::TOPOLOGY;
use api::hypershift::v1beta1::configuration::authentication::AuthenticationType;
use api::hypershift::v1beta1::configuration::feature_gate::FeatureSet;
use api::hypershift::v1beta1::etcd::EtcdManagementType;
use api::hypershift::v1beta1::hosted_cluster::AvailabilityPolicy;
use api::hypershift::v1beta1::networking::ClusterNetworking;
use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::platform::aws::AwsEndpointAccess;
use api::hypershift::v1beta1::platform::azure::AzureTopology;
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};

use super::context::Context;
use super::tls::Tls;

/// Value of the topology annotation that puts request-serving components on nodes of their own.
const DEDICATED: &str = "dedicated-request-serving-components";

/// Under which addresses the services can be reached. Hosts may be empty and ports 0 while that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Infra {
    /// The API server, from outside.
    pub api: Endpoint,
    /// The OAuth server.
    pub oauth: Endpoint,
    /// The server of konnectivity, for agents of nodes.
    pub konnectivity: Endpoint,
    /// The ignition server.
    pub ignition: Endpoint,
    /// Whether the control plane's own router is needed.
    pub needs_router: bool,
    /// The external host of the router, once it is known.
    pub router_host: Option<String>,
    /// The internal host of the router, once it is known.
    pub private_router_host: Option<String>,
}

/// A host and a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or IP address; empty while it is not known.
    pub host: String,
    /// The port; 0 while it is not known.
    pub port: i32,
}

/// Who can reach the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Public,
    /// Everybody, and the cluster's own network by a way of its own.
    PublicAndPrivate,
    /// The cluster's own network only.
    Private,
}

// === impl Endpoint ===

impl Endpoint {
    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }

    /// Its URL. An IPv6 address is put in brackets.
    pub fn url(&self) -> String {
        url(&self.host, self.port)
    }
}

/// The URL of a host and a port. An IPv6 address is put in brackets.
pub fn url(host: &str, port: i32) -> String {
    if host.contains(':') {
        return format!("https://[{host}]:{port}");
    }
    format!("https://{host}:{port}")
}

// === impl Access ===

impl Access {
    /// Whether everybody can reach it.
    pub fn is_public(self) -> bool {
        self != Self::Private
    }

    /// Whether the cluster's own network has a way of its own.
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

    /// Whether the platform is this one.
    pub fn is_on(&self, platform: PlatformType) -> bool {
        self.platform() == platform
    }

    /// Who can reach the API server.
    pub fn access(&self) -> Access {
        let platform = &self.spec().platform;
        let aws = platform.aws.as_ref().map(|aws| aws.endpoint_access);
        let azure = platform.azure.as_ref().and_then(|azure| azure.topology);
        match (platform.type_, aws, azure) {
            (PlatformType::Aws, Some(AwsEndpointAccess::Private), _)
            | (PlatformType::Azure, _, Some(AzureTopology::Private)) => Access::Private,
            (PlatformType::Aws, Some(AwsEndpointAccess::PublicAndPrivate), _)
            | (PlatformType::Azure, _, Some(AzureTopology::PublicAndPrivate)) => {
                Access::PublicAndPrivate
            }
            _ => Access::Public,
        }
    }

    /// How a service is published, if it is.
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

    /// The address of the API server in the cluster's own network.
    pub fn api_internal_host(&self) -> String {
        format!("api.{}.hypershift.local", self.name())
    }

    /// The URL of the API server within the control plane.
    pub fn api_service_url(&self) -> String {
        url("kube-apiserver", self.api_port())
    }

    /// The address under which nodes reach the API server by a proxy of their own.
    pub fn api_advertise_address(&self) -> &'a str {
        let wanted = self
            .api_networking()
            .and_then(|api| api.advertise_address.as_deref());
        let ipv4 = self
            .first_cluster_network()
            .is_none_or(|cidr| !cidr.contains(':'));
        wanted.unwrap_or(if ipv4 { "172.20.0.1" } else { "fd00::1" })
    }

    fn api_networking(
        &self,
    ) -> Option<&'a api::hypershift::v1beta1::networking::ApiServerNetworking> {
        self.networking()
            .and_then(|networking| networking.api_server.as_ref())
    }

    /// Address ranges of the cluster.
    pub fn networking(&self) -> Option<&'a ClusterNetworking> {
        self.spec().networking.as_ref()
    }

    /// The address ranges of pods.
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

    /// The address ranges of services.
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

    /// Whether components have one replica only.
    pub fn is_single_replica(&self) -> bool {
        self.spec().controller_availability_policy == AvailabilityPolicy::SingleReplica
    }

    /// Whether request-serving components have nodes of their own.
    pub fn is_dedicated(&self) -> bool {
        matches!(TOPOLOGY.get(self.annotations()), Ok(Some(topology)) if topology == DEDICATED)
    }

    /// Whether etcd is ours.
    pub fn is_etcd_managed(&self) -> bool {
        self.spec().etcd.management_type == EtcdManagementType::Managed
    }

    /// Versions and ciphers of TLS.
    pub fn tls(&self) -> Tls {
        Tls::of(self.spec())
    }

    /// Whether users log in at an OAuth server of the cluster.
    pub fn is_oauth_enabled(&self) -> bool {
        let configuration = self.spec().configuration.as_ref();
        let type_ = configuration
            .and_then(|configuration| configuration.authentication.as_ref())
            .and_then(|authentication| authentication.type_);
        !matches!(
            type_,
            Some(AuthenticationType::Oidc | AuthenticationType::None)
        )
    }

    /// The chosen set of features; nothing is the default one.
    pub fn feature_set(&self) -> Option<FeatureSet> {
        let configuration = self.spec().configuration.as_ref();
        configuration
            .and_then(|configuration| configuration.feature_gate.as_ref())
            .and_then(|gate| gate.feature_set)
            .filter(|set| *set != FeatureSet::Default)
    }
}
