//! The Services of the router: for everybody, and for the cluster's own network.

use control_plane_component::{Context, Publication};
use serde_json::{Value, json};

use crate::infra::services::{Reach, Service};
use crate::infra::{is_swift, labels_routes, shares_ingress};

pub(super) const PUBLICATION: Publication = Publication {
    services: &["private-router", "router"],
    routes: &[],
    objects,
};

fn objects(context: &Context<'_>) -> Vec<Value> {
    routers(context).into_iter().map(Service::object).collect()
}

fn routers(context: &Context<'_>) -> Vec<Service> {
    let access = context.access();
    let port = || json!({ "name": "https", "port": 443, "targetPort": "https", "protocol": "TCP" });
    let mut all = Vec::new();
    if access.is_private() {
        let mut router = Service::new("private-router", "private-router", port());
        if !is_swift(context) && !shares_ingress(context) {
            router.load_balancer(context, Reach::OwnNetwork);
        }
        all.push(router);
    }
    if access.is_public()
        && labels_routes(context)
        && !shares_ingress(context)
        && !is_swift(context)
    {
        let mut router = Service::new("router", "private-router", port());
        router.load_balancer(context, Reach::Everybody);
        all.push(router);
    }
    all
}
