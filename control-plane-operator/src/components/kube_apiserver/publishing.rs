//! The Services and Routes of the API server, and of konnectivity's server beside it.

use api::hypershift::v1beta1::platform::PlatformType;
use api::hypershift::v1beta1::services::PublishingStrategyType::{LoadBalancer, NodePort};
use api::hypershift::v1beta1::services::ServiceType;
use control_plane_component::{Context, Publication};
use serde_json::{Value, json};

use crate::infra::routes::{self, by_route, chosen, route};
use crate::infra::services::{Reach, Service};

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
};

fn objects(context: &Context<'_>) -> Vec<Value> {
    let mut services = api_server(context);
    services.push(konnectivity(context));
    let mut all: Vec<_> = services.into_iter().map(Service::object).collect();
    all.extend(api_server_routes(context));
    all.extend(konnectivity_route(context));
    all
}

fn api_server(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let strategy = context.strategy(ServiceType::ApiServer);
    let type_ = strategy.map(|strategy| strategy.type_);
    let port = json!({ "port": context.api_port(), "targetPort": "client", "protocol": "TCP" });
    let mut main = Service::new("kube-apiserver", "kube-apiserver", port);
    main.spec
        .insert("ipFamilyPolicy".to_owned(), json!("PreferDualStack"));
    let mut all = Vec::new();
    match (type_, strategy) {
        (Some(NodePort), Some(strategy)) => main.node_port(strategy),
        (Some(LoadBalancer), Some(strategy)) => {
            if access.is_public() && context.is_on(PlatformType::Azure) {
                // Its load balancers take a port only once for each address.
                let port = json!({ "port": 7443, "targetPort": "client", "protocol": "TCP" });
                let mut balancer = Service::new("kube-apiserverlb", "kube-apiserver", port);
                balancer.load_balancer(context, Reach::Everybody);
                balancer.host(strategy);
                all.push(balancer);
            } else if access.is_public() {
                main.load_balancer(context, Reach::Everybody);
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
    let mut service = Service::new("kube-apiserver-private", "kube-apiserver", port);
    service.load_balancer(context, Reach::OwnNetwork);
    service
}

fn konnectivity(context: &Context<'_>) -> Service {
    let port = json!({ "port": 8091, "targetPort": 8091, "protocol": "TCP" });
    let mut service = Service::new("konnectivity-server", "kube-apiserver", port);
    service.publish(context, ServiceType::Konnectivity);
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
    let (host, reach) = if context.access().is_public() {
        (chosen(context, name, host), routes::Reach::External)
    } else {
        let host = format!("{name}.apps.{}.hypershift.local", context.name());
        (Some(host), routes::Reach::Internal)
    };
    let mut route = route(context, (name, name), host, reach);
    route["metadata"]["annotations"][BALANCE.0] = json!(BALANCE.1);
    Some(route)
}
