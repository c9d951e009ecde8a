//! Helpers that read addresses from the statuses of Services and Routes.

use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort, Route};
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};
use control_plane_component::Context;
use control_plane_component::facts::Endpoint;
use serde_json::Value;

/// The port of all Routes.
pub(crate) const HTTPS: i32 = 443;

/// Returns the address of a published service, from its Service or Route.
pub(crate) fn of(context: &Context<'_>, service: ServiceType, name: &str, route: &str) -> Endpoint {
    let Some(strategy) = context.strategy(service) else {
        return Endpoint::default();
    };
    let (host, port) = match strategy.type_ {
        LoadBalancer => {
            let chosen = strategy
                .load_balancer
                .as_ref()
                .and_then(|balancer| balancer.hostname.clone());
            (
                balancer(context, name).map(|found| chosen.unwrap_or(found)),
                port(context, name, "port"),
            )
        }
        NodePort => {
            let chosen = strategy.node_port.as_ref().map(|node| node.address.clone());
            (chosen, port(context, name, "nodePort"))
        }
        Route => {
            let found = context
                .objects
                .get("route.openshift.io", "Route", route)
                .map(|route| route["spec"]["host"].clone());
            let found = found.as_ref().and_then(Value::as_str).map(str::to_owned);
            (found.or_else(|| route_host(strategy)), HTTPS)
        }
        _ => (None, 0),
    };
    Endpoint {
        host: host.unwrap_or_default(),
        port,
    }
}

/// Returns the configured host name of a Route.
pub(crate) fn route_host(strategy: &ServicePublishingStrategy) -> Option<String> {
    let host = strategy
        .route
        .as_ref()
        .and_then(|route| route.hostname.clone());
    host.filter(|host| !host.is_empty())
}

fn port(context: &Context<'_>, service: &str, field: &str) -> i32 {
    let service = context.objects.get("", "Service", service);
    let port = service.and_then(|service| service["spec"]["ports"][0][field].as_i64());
    port.and_then(|port| i32::try_from(port).ok())
        .unwrap_or_default()
}

/// Returns the address of a load balancer.
pub(crate) fn balancer(context: &Context<'_>, service: &str) -> Option<String> {
    let ingress =
        &context.objects.get("", "Service", service)?["status"]["loadBalancer"]["ingress"][0];
    let address = ingress["hostname"]
        .as_str()
        .or_else(|| ingress["ip"].as_str());
    address.map(str::to_owned)
}

/// Returns the cluster IP of a `ClusterIP` Service.
pub(crate) fn cluster_ip(context: &Context<'_>, service: &str) -> Option<String> {
    let spec = &context.objects.get("", "Service", service)?["spec"];
    let address = spec["clusterIP"]
        .as_str()
        .filter(|_| spec["type"] == "ClusterIP");
    address.map(str::to_owned)
}
