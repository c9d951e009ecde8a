//! Under which addresses the services can be reached, as far as that is known by now.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort, Route};
use api::hypershift::v1beta1::services::{ServicePublishingStrategy, ServiceType};
use control_plane_component::Context;
use control_plane_component::facts::{Endpoint, Infra};
use serde_json::Value;

use super::{labels_routes, shares_ingress, uses_router};

const HTTPS: i32 = 443;

/// The addresses, from the statuses of Services and Routes.
pub fn facts(context: &Context<'_>) -> Infra {
    Infra {
        api: api(context),
        konnectivity: of(
            context,
            ServiceType::Konnectivity,
            "konnectivity-server",
            "konnectivity-server",
        ),
        oauth: of(
            context,
            ServiceType::OAuthServer,
            "oauth-openshift",
            oauth_route(context),
        ),
        ignition: of(
            context,
            ServiceType::Ignition,
            ignition_service(context),
            "ignition-server",
        ),
        needs_router: uses_router(context),
        router_host: balancer(context, "router"),
        private_router_host: balancer(context, "private-router")
            .or_else(|| cluster_ip(context, "private-router")),
    }
}

/// What is not known yet, and has to be before components are made.
pub fn missing(context: &Context<'_>, infra: &Infra) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut need = |known: bool, what: &'static str| {
        if !known {
            all.push(what);
        }
    };
    need(infra.api.is_known(), "the address of the API server");
    need(infra.konnectivity.is_known(), "the address of konnectivity");
    need(
        !context.is_oauth_enabled() || infra.oauth.is_known(),
        "the address of the OAuth server",
    );
    if infra.needs_router && !shares_ingress(context) {
        let public = context.access().is_public() && labels_routes(context);
        let has_service = context.objects.get("", "Service", "router").is_some();
        need(
            !public || !has_service || infra.router_host.is_some(),
            "the address of the router",
        );
        let private = context.access().is_private();
        need(
            !private || infra.private_router_host.is_some(),
            "the address of the private router",
        );
    }
    all
}

fn api(context: &Context<'_>) -> Endpoint {
    let public = context.access().is_public();
    let strategy = context
        .strategy(ServiceType::ApiServer)
        .map(|strategy| strategy.type_);
    match strategy {
        Some(LoadBalancer) if public => {
            let azure = context.is_on(PlatformType::Azure);
            let (service, port) = if azure {
                ("kube-apiserverlb", 7443)
            } else {
                ("kube-apiserver", context.api_port())
            };
            Endpoint {
                port,
                ..of(context, ServiceType::ApiServer, service, "")
            }
        }
        Some(LoadBalancer) => {
            let known = balancer(context, "kube-apiserver-private").is_some();
            let port = if context.is_on(PlatformType::Azure) {
                7443
            } else {
                6443
            };
            Endpoint {
                host: if known {
                    context.api_internal_host()
                } else {
                    String::new()
                },
                port,
            }
        }
        Some(Route) if !public => {
            let chosen = context
                .strategy(ServiceType::ApiServer)
                .and_then(route_host);
            Endpoint {
                host: chosen.unwrap_or_else(|| context.api_internal_host()),
                port: HTTPS,
            }
        }
        _ => of(
            context,
            ServiceType::ApiServer,
            "kube-apiserver",
            "kube-apiserver",
        ),
    }
}

/// The address of a service, by its Service or its Route.
fn of(context: &Context<'_>, service: ServiceType, name: &str, route: &str) -> Endpoint {
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

fn route_host(strategy: &ServicePublishingStrategy) -> Option<String> {
    let host = strategy
        .route
        .as_ref()
        .and_then(|route| route.hostname.clone());
    host.filter(|host| !host.is_empty())
}

fn oauth_route(context: &Context<'_>) -> &'static str {
    if context.access().is_public() {
        "oauth"
    } else {
        "oauth-private"
    }
}

fn ignition_service(context: &Context<'_>) -> &'static str {
    if context.is_on(PlatformType::IbmCloud) {
        "ignition-server"
    } else {
        "ignition-server-proxy"
    }
}

fn port(context: &Context<'_>, service: &str, field: &str) -> i32 {
    let service = context.objects.get("", "Service", service);
    let port = service.and_then(|service| service["spec"]["ports"][0][field].as_i64());
    port.and_then(|port| i32::try_from(port).ok())
        .unwrap_or_default()
}

/// The address that a load balancer got.
fn balancer(context: &Context<'_>, service: &str) -> Option<String> {
    let ingress =
        &context.objects.get("", "Service", service)?["status"]["loadBalancer"]["ingress"][0];
    let address = ingress["hostname"]
        .as_str()
        .or_else(|| ingress["ip"].as_str());
    address.map(str::to_owned)
}

/// The address of a Service that is not balanced.
fn cluster_ip(context: &Context<'_>, service: &str) -> Option<String> {
    let spec = &context.objects.get("", "Service", service)?["spec"];
    let address = spec["clusterIP"]
        .as_str()
        .filter(|_| spec["type"] == "ClusterIP");
    address.map(str::to_owned)
}
