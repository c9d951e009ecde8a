//! How the services of a control plane are published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// How one service of the control plane is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePublishingStrategyMapping {
    /// The service: `APIServer`, `OAuthServer`, `Konnectivity` or `Ignition`. `OIDC` and `OVNSbDb`
    /// are accepted for old objects and do nothing.
    pub service: ServiceType,
    /// The way in which it is published.
    pub service_publishing_strategy: ServicePublishingStrategy,
}

/// A way to publish a service, and what that way needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "(self.type == 'NodePort') == has(self.nodePort)",
        "nodePort is required with type NodePort and not allowed with any other; add it, remove it \
         or correct type"
    ),
    transform = rule(
        "self.type == 'Route' ? !(has(self.nodePort) || has(self.loadBalancer)) : !has(self.route)",
        "route goes with type Route alone, and nodePort and loadBalancer do not go with it; keep \
         only the member that belongs to type"
    ),
    transform = rule(
        "self.type == 'LoadBalancer' ? !(has(self.nodePort) || \
         has(self.route)) : !has(self.loadBalancer)",
        "loadBalancer goes with type LoadBalancer alone, and nodePort and route do not go with it; \
         keep only the member that belongs to type"
    ),
    transform = rule(
        "self.type != 'None' || !(has(self.nodePort) || has(self.route) || has(self.loadBalancer))",
        "type None takes no nodePort, route or loadBalancer; remove them"
    ),
    transform = rule(
        "self.type != 'S3' || !(has(self.nodePort) || has(self.route) || has(self.loadBalancer))",
        "type S3 takes no nodePort, route or loadBalancer; remove them"
    ),
)]
pub struct ServicePublishingStrategy {
    /// `LoadBalancer` gives the service its own load balancer, `Route` shares a router,
    /// `NodePort` uses a port of the management cluster's nodes.
    /// `None` does not publish it, and `S3` is accepted for the OIDC documents of old objects.
    #[serde(rename = "type")]
    pub type_: PublishingStrategyType,
    /// Address and port, when `type` is `NodePort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_port: Option<NodePortPublishingStrategy>,
    /// Host name of the load balancer, when `type` is `LoadBalancer`; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerPublishingStrategy>,
    /// Host name of the route, when `type` is `Route`; optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<RoutePublishingStrategy>,
}

/// A service on a port of the management cluster's nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePortPublishingStrategy {
    /// Host name or IP address under which the nodes of the hosted cluster reach the port.
    /// It is added to the service's certificate.
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^(localhost|([a-zA-Z0-9][a-zA-Z0-9-]*[.])+[a-zA-Z]{2,})$') || \
             self.matches('^[0-9]{1,3}([.][0-9]{1,3}){3}$') || \
             self.matches('^(([[:xdigit:]]{1,4}:){7}[[:xdigit:]]{1,4}|([[:xdigit:]]{1,4}:){1,7}:|([[:xdigit:]]{1,4}:){1,6}:[[:xdigit:]]{1,4}|([[:xdigit:]]{1,4}:){1,5}(:[[:xdigit:]]{1,4}){1,2}|([[:xdigit:]]{1,4}:){1,4}(:[[:xdigit:]]{1,4}){1,3}|([[:xdigit:]]{1,4}:){1,3}(:[[:xdigit:]]{1,4}){1,4}|([[:xdigit:]]{1,4}:){1,2}(:[[:xdigit:]]{1,4}){1,5}|[[:xdigit:]]{1,4}:(:[[:xdigit:]]{1,4}){1,6}|:((:[[:xdigit:]]{1,4}){1,7}|:))$')",
            "address must be a host name with a domain, localhost, an IPv4 or an IPv6 address"
        ),
    )]
    pub address: String,
    /// Port on the nodes. Without a value, or with 0, Kubernetes chooses one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// A service behind its own load balancer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerPublishingStrategy {
    /// DNS name for the load balancer, which external-dns then publishes; it must lie in a domain
    /// that external-dns manages.
    /// Without a value the address that the cloud gives is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^([a-zA-Z0-9-]+[.])+[a-zA-Z]{2,}$')",
            "hostname must be a full DNS name such as api.cluster.example.com"
        ),
    )]
    pub hostname: Option<String>,
}

/// A service behind a router.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoutePublishingStrategy {
    /// DNS name of the route.
    /// Without a value one is made from the service, the namespace and the management cluster's
    /// domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        transform = rule(
            "self.matches('^([a-zA-Z0-9-]+[.])+[a-zA-Z]{2,}$')",
            "hostname must be a full DNS name such as oauth.cluster.example.com"
        ),
    )]
    pub hostname: Option<String>,
}

/// A service of the control plane that is reachable from outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ServiceType {
    /// The Kubernetes API server.
    #[serde(rename = "APIServer")]
    ApiServer,
    /// The OpenShift OAuth server.
    OAuthServer,
    /// Deprecated, has no effect.
    #[serde(rename = "OIDC")]
    Oidc,
    /// The tunnel from the control plane to the nodes.
    Konnectivity,
    /// The server that gives new nodes their configuration.
    Ignition,
    /// Deprecated, has no effect.
    #[serde(rename = "OVNSbDb")]
    OvnSbDb,
}

/// A way to publish a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PublishingStrategyType {
    /// Its own load balancer.
    LoadBalancer,
    /// A port of the management cluster's nodes.
    NodePort,
    /// A route of a shared router.
    Route,
    /// Not at all.
    None,
    /// Deprecated: documents in a bucket.
    S3,
}
