//! Metrics of operators.

use control_plane_component::certificate::server;
use control_plane_component::names::service;
use control_plane_component::{Component, Context, Leaf};

use super::pending;

pub(super) fn components() -> [Component; 2] {
    [
        pending("catalog-operator").with_certificates(|context| {
            let name = "catalog-operator-metrics";
            vec![by_service(context, "catalog-operator-serving-cert", name)]
        }),
        pending("olm-operator").with_certificates(|context| {
            let name = "olm-operator-metrics";
            vec![by_service(context, "olm-operator-serving-cert", name)]
        }),
    ]
}

fn by_service(context: &Context<'_>, secret: &str, name: &str) -> Leaf {
    server(secret, name).names(service(context, name))
}
