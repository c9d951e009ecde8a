//! Services and Routes of the API server and of the konnectivity server.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort, Route};
use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::facts::{Endpoint, Infra};
use control_plane_component::{Context, Publication};
use serde_json::{Value, json};

use crate::infra::address::{HTTPS, balancer, of, route_host};
use crate::infra::routes::{self, by_route, chosen, route};
use crate::infra::services::{Reach, Service};

/// Name of the component, and app label of its pods.
const NAME: &str = "kube-apiserver";
const BALANCE: (&str, &str) = ("haproxy.router.openshift.io/balance", "roundrobin");

pub(super) const PUBLICATION: Publication = Publication {
    services: &[
        "kube-apiserver",
        "kube-apiserverlb",
        "kube-apiserver-private",
        "konnectivity-server",
    ],
    routes: &[
        "kube-apiserver",
        "kube-apiserver-private",
        "kube-apiserver-internal",
        "konnectivity-server",
    ],
    objects,
    addresses,
    missing,
};

fn objects(context: &Context<'_>) -> Vec<Value> {
    let mut services = api_server(context);
    services.push(konnectivity(context));
    let mut all: Vec<_> = services.into_iter().map(Service::object).collect();
    all.extend(api_server_routes(context));
    all.extend(konnectivity_route(context));
    all
}

fn addresses(context: &Context<'_>, infra: &mut Infra) {
    let konnectivity = "konnectivity-server";
    infra.api = api_address(context);
    infra.konnectivity = of(
        context,
        ServiceType::Konnectivity,
        konnectivity,
        konnectivity,
    );
}

fn missing(_: &Context<'_>, infra: &Infra) -> Vec<&'static str> {
    let mut all = Vec::new();
    if !infra.api.is_known() {
        all.push("the address of the API server");
    }
    if !infra.konnectivity.is_known() {
        all.push("the address of the konnectivity server");
    }
    all
}

fn api_address(context: &Context<'_>) -> Endpoint {
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

fn api_server(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let strategy = context.strategy(ServiceType::ApiServer);
    let type_ = strategy.map(|strategy| strategy.type_);
    let port = json!({ "port": context.api_port(), "targetPort": "client", "protocol": "TCP" });
    let mut main = Service::new("kube-apiserver", NAME, port).labeled_by_component();
    main.spec
        .insert("ipFamilyPolicy".to_owned(), json!("PreferDualStack"));
    let mut all = Vec::new();
    match (type_, strategy) {
        (Some(NodePort), Some(strategy)) => main.node_port(strategy),
        (Some(LoadBalancer), Some(strategy)) => {
            if access.is_public() && context.is_on(PlatformType::Azure) {
                // Azure load balancers accept each port only once per address.
                let port = json!({ "port": 7443, "targetPort": "client", "protocol": "TCP" });
                let mut balancer =
                    Service::new("kube-apiserverlb", NAME, port).labeled_by_component();
                balancer.load_balancer(context, Reach::Public);
                balancer.allow_cidr_blocks(context);
                balancer.host(strategy);
                all.push(balancer);
            } else if access.is_public() {
                main.load_balancer(context, Reach::Public);
                main.allow_cidr_blocks(context);
                main.host(strategy);
            }
            if access.is_private() {
                all.push(private_api_server(context));
            }
        }
        _ => {}
    }
    all.insert(0, main);
    all
}

fn private_api_server(context: &Context<'_>) -> Service {
    let port = if context.is_on(PlatformType::Azure) {
        7443
    } else {
        6443
    };
    let port = json!({ "port": port, "targetPort": "client", "protocol": "TCP" });
    let mut service = Service::new("kube-apiserver-private", NAME, port).labeled_by_component();
    service.load_balancer(context, Reach::Private);
    service
}

fn konnectivity(context: &Context<'_>) -> Service {
    let port = json!({ "port": 8091, "targetPort": 8091, "protocol": "TCP" });
    let mut service = Service::new("konnectivity-server", NAME, port).labeled_by_component();
    service.publish(context, ServiceType::Konnectivity);
    service.allow_cidr_blocks(context);
    service
}

fn api_server_routes(context: &Context<'_>) -> Vec<Value> {
    let Some(host) = by_route(context, ServiceType::ApiServer) else {
        return Vec::new();
    };
    let to = |name: &str, host: Option<String>, reach| {
        route(context, (name, "kube-apiserver"), host, reach)
    };
    let mut all = Vec::new();
    if context.access().is_public() {
        let host = chosen(context, "kube-apiserver", host);
        all.push(to("kube-apiserver", host, routes::Reach::External));
    } else if let Some(host) = host {
        all.push(to(
            "kube-apiserver-private",
            Some(host.to_owned()),
            routes::Reach::Private,
        ));
    }
    let internal = Some(context.api_internal_host());
    all.push(to(
        "kube-apiserver-internal",
        internal,
        routes::Reach::Internal,
    ));
    all
}

fn konnectivity_route(context: &Context<'_>) -> Option<Value> {
    let host = by_route(context, ServiceType::Konnectivity)?;
    let name = "konnectivity-server";
    // Only nodes connect to it, and those of a private cluster do so in its network, also if its API server is public.
    let (host, reach) = if context.access().is_private() {
        let host = format!("{name}.apps.{}.hypershift.local", context.name());
        (Some(host), routes::Reach::Internal)
    } else {
        (chosen(context, name, host), routes::Reach::External)
    };
    let mut route = route(context, (name, name), host, reach);
    route["metadata"]["annotations"][BALANCE.0] = json!(BALANCE.1);
    Some(route)
}
