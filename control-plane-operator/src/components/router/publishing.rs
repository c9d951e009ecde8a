//! Services of the router: public, and for the cluster's network.

use control_plane_component::facts::Infra;
use control_plane_component::{Context, Publication};
use serde_json::{Value, json};

use crate::infra::address::{balancer, cluster_ip};
use crate::infra::services::{Reach, Service};
use crate::infra::{labels_routes, shares_ingress, uses_router};

const PRIVATE: &str = "private-router";
const PUBLIC: &str = "router";

pub(super) const PUBLICATION: Publication = Publication {
    services: &[PRIVATE, PUBLIC],
    routes: &[],
    objects,
    addresses,
    missing,
};

fn objects(context: &Context<'_>) -> Vec<Value> {
    routers(context).into_iter().map(Service::object).collect()
}

fn routers(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let port = || json!({ "name": "https", "port": 443, "targetPort": "https", "protocol": "TCP" });
    let mut all = Vec::new();
    if access.is_private() {
        let mut router = Service::new(PRIVATE, PRIVATE, port());
        if !context.is_swift() && !shares_ingress(context) {
            router.load_balancer(context, Reach::Private);
        }
        all.push(router);
    }
    if access.is_public()
        && labels_routes(context)
        && !shares_ingress(context)
        && !context.is_swift()
    {
        let mut router = Service::new(PUBLIC, PRIVATE, port());
        router.load_balancer(context, Reach::Public);
        router.internet_facing(context);
        all.push(router);
    }
    all
}

fn addresses(context: &Context<'_>, infra: &mut Infra) {
    infra.needs_router = uses_router(context);
    infra.router_host = balancer(context, PUBLIC);
    infra.private_router_host = balancer(context, PRIVATE).or_else(|| cluster_ip(context, PRIVATE));
}

fn missing(context: &Context<'_>, infra: &Infra) -> Vec<&'static str> {
    let mut all = Vec::new();
    if !infra.needs_router || shares_ingress(context) {
        return all;
    }
    let has_service = context.objects.get("", "Service", PUBLIC).is_some();
    let is_public = context.access().is_public() && labels_routes(context) && has_service;
    if is_public && infra.router_host.is_none() {
        all.push("the address of the router");
    }
    if context.access().is_private() && infra.private_router_host.is_none() {
        all.push("the address of the private router");
    }
    all
}
